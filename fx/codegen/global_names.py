"""Stage 05, codegen: the names of the globals that generated code uses.

Generated code mentions functions, types and constants.  Each gets a name, and
a dict `name -> object` goes to `exec` as the globals of the code.  A user may
have a parameter named `torch`, which would hide the module inside of the
function.  So the parameters and variables are known before the first global
is named, and where one would hide a global, the global gets another name.

    def forward(self, torch):
        torch_1 = torch
        relu = torch_2.relu(torch_1);  torch_1 = None

Functions of torch are written with their path, `torch.nn.functional.gelu`,
provided that the path leads to them; everything else is bound in the dict.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from types import BuiltinFunctionType, MethodType, ModuleType
from typing import Final

import torch

from ..linked_list.namespace import BUILTINS, Namespace, target_to_str
from ..torch_internals import pytree
from ..usedef.qualified_names import (
    _get_qualified_name,
    is_from_torch,
    resolves_to,
)
from ..usedef.values import Value

PREFILLED: Final[dict[str, object]] = {
    "inf": math.inf,
    "nan": math.nan,
    "NoneType": type(None),
    "torch": torch,
    "device": torch.device,
    "pytree": pytree.MODULE,
}
"""The globals that every generated function has, to which `variants` adds what
takes nested inputs apart."""

_BY_VALUE: Final = frozenset((str, int, bool, bytes))
"""Exact types of which equal objects share one global (0.0 is -0.0, so no
floats)."""

_NO_OWNER: Final = (ModuleType, type(None))
"""Types of `__self__` of functions that are not bound to an object."""


class GlobalNames:
    """Gives objects their names in one generated function.

    - An object gets one name and keeps it.
    - That name is neither a parameter or variable of the function nor the
      name of another object.
    - None of the object's methods runs, not even `__hash__`.

    Attributes:
        values: name -> object, what the code needs as its globals.
        spelled: what the code writes for the prefilled globals: "torch_1"
            for "torch" if a parameter is named `torch`.
    """

    def __init__(self, taken: Iterable[str]) -> None:
        """Fill in the globals that every function has.

        Args:
            taken: the names of the function's parameters and variables.
        """
        self.values: dict[str, Value] = {}
        self.spelled: dict[str, str] = {}
        self._namespace = Namespace()
        self._taken = {*taken}
        self._known: dict[Hashable, str] = {}
        for name, obj in PREFILLED.items():
            if name in self._taken:
                self.spelled[name] = self.bind(name, obj)
            else:
                self.spelled[name] = self._known[id(obj)] = name
                self.values[name] = obj

    def name_of(self, obj: Value, hint: str = "") -> str:
        """The expression by which the code finds a function or a class.

        Args:
            obj: the function or class; whatever has a `__name__`.
            hint: the name to try if it needs a global; by default its
                qualified name.

        torch.fx: graph.py, add_global
        """
        key = _key(obj)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._find(obj, hint)
        return known

    def _find(self, obj: Value, hint: str) -> str:
        """A path in torch, the name of a builtin, or a global bound to it."""
        text = _get_qualified_name(obj)
        if text.startswith("torch.") and is_from_torch(obj):
            if resolves_to(text, obj):
                return self.in_torch(text)
        elif text in BUILTINS:  # a bare name is that of a builtin itself
            name = self.builtin(text)
            self.values[name] = obj
            return name
        return self.bind(hint or text, obj)

    def in_torch(self, path: str) -> str:
        """The path "torch.x.y", as the code must write it."""
        return self.spelled["torch"] + path.removeprefix("torch")

    def builtin(self, name: str) -> str:
        """The name by which the code finds a builtin of Python."""
        if name not in self._taken:
            return name
        return self.bind(name, BUILTINS[name])

    def bind(self, hint: str, obj: Value) -> str:
        """Make `obj` a global, under a name as close to `hint` as can be.

        torch.fx: graph.py, add_global
        """
        key = _key(obj)
        known = self._known.get(key)
        if known is not None:
            return known
        name = self._known[key] = self._free_name(hint)
        self.values[name] = obj
        return name

    def constant(self, value: Value) -> str:
        """A global for a constant, named after its type."""
        kind = target_to_str(type(value).__name__)
        return self.bind(f"_constant_{kind}", value)

    def scratch(self, name: str) -> str:
        """A variable for lines that do not belong to a node."""
        key = ("scratch", name)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._free_name(name)
            self._taken.add(known)
        return known

    def _free_name(self, hint: str) -> str:
        """A name that neither a variable nor a global has yet."""
        name = self._namespace.create_name(hint)
        while name in self._taken or name in self.values:
            name = self._namespace.create_name(hint)
        return name

    def claim(self, name: str, obj: Value) -> None:
        """Make `obj` a global under exactly this name.

        Raises:
            RuntimeError: the name is in use.
        """
        if name in self._taken or self.values.get(name, obj) is not obj:
            raise RuntimeError(
                f"additional_globals() of the code generator wants the global "
                f"{name!r}, but generated code uses that name: rename the "
                "node or parameter, or choose another name for the global"
            )
        self.values[name] = obj


def _key(obj: Value) -> Hashable:
    """What tells objects apart: identity, and equality for plain constants.

    `x.method` makes a new object each time; what it is bound to is the same.
    """
    kind = type(obj)
    if kind in _BY_VALUE:
        return kind, obj
    if kind is MethodType:
        return id(obj.__func__), id(obj.__self__)
    if kind is BuiltinFunctionType and type(obj.__self__) not in _NO_OWNER:
        return obj.__name__, id(obj.__self__)
    return id(obj)
