"""Stage 05, codegen: the names that generated code uses.

    def forward(self, x, input):         parameters
        input_1 = input                  a variable for each node
        relu = torch.relu(x)             globals: torch, _constant_tensor, ...

A parameter has the name that callers use as a keyword, and the module is
`self`.  A node's value is a variable, named like the node (`LocalNames`); it is
renamed if it would have the name of a parameter, a keyword, a builtin or
another node, since users may set `node.name`.  What the code uses and does not
make, functions, types and constants, has a global (`GlobalNames`).  Parameters
cannot move, variables are named next, and globals make room for both.
"""

from __future__ import annotations

import functools
import keyword
import math
import unicodedata
from collections.abc import Hashable, Iterable
from types import BuiltinFunctionType, MethodType, ModuleType
from typing import Final, NoReturn

import torch

from ..linked_list.namespace import BUILTINS, TAKEN, Namespace, target_to_str
from ..node import Node
from ..torch_private.pytree import pytree
from ..use_def.dead_code import RULE
from ..use_def.text import _get_qualified_name, is_from_torch, resolves_to
from ..use_def.values import AnyValue

_KEYWORDS: Final = frozenset(keyword.kwlist)


class LocalNames(dict[Node, str]):
    """The variable of each node of a graph.

    Attributes:
        parameters: placeholder -> its parameter, without stars.
        roots: the names by which the code finds the module.

    Cost: O(nodes).

    torch.fx: graph.py, Graph.python_code (node_repr)
    """

    parameters: dict[Node, str]
    roots: frozenset[str]

    def __init__(self, nodes: Iterable[Node], root: str) -> None:
        """Name the nodes.

        Nearly always the names that the nodes have are legal and distinct,
        which a few questions about sets and one long text tell, each answered
        in C.  Otherwise the nodes are named anew, in order, and those with a
        good name keep it.

        Args:
            nodes: all nodes of the graph, in order.
            root: how the code finds the module, "self" or "self.child".
        """
        super().__init__({node: node._name for node in nodes})
        self.roots = frozenset(("self", root.partition(".")[0]))
        self.parameters = {
            node: as_python_reads(exact(node._target).lstrip("*"))
            for node in self
            if node._op == "placeholder" and isinstance(node._target, str)
        }
        names = set(self.values())
        theirs = {p for node, p in self.parameters.items() if p != self[node]}
        theirs |= self.roots
        if not (_are_legal(names, len(self)) and names.isdisjoint(theirs)):
            self._rename()

    def _rename(self) -> None:
        """Change as few names as possible, from the first node to the last."""
        namespace = Namespace()
        parameters = set(self.parameters.values())
        for node in self:
            own = self.parameters.get(node)
            wish = exact(node.name)
            name = namespace.create_name(wish)
            while name in self.roots or (name in parameters and name != own):
                name = namespace.create_name(wish)
            self[node] = name

    def taken(self) -> set[str]:
        """All names that a global must not have."""
        return {*self.values(), *self.parameters.values(), *self.roots}

    def __missing__(self, node: Node) -> NoReturn:
        """Say of an argument node that it is not in the graph."""
        users = ", ".join(map(str, node.users))
        raise RuntimeError(
            f"Node {node}, used by {users}, was erased or is of another graph: "
            "pass a node of this graph instead (node.replace_input_with)"
        )


def _are_legal(names: set[str], count: int) -> bool:
    """Whether `count` nodes can have these names as they are."""
    return (
        len(names) == count
        and set(map(type, names)) <= {str}
        and all(map(str.isidentifier, names))
        and "".join(names).isascii()
        and names.isdisjoint(TAKEN)
    )


PREFILLED: Final[dict[str, object]] = {
    "inf": math.inf,
    "nan": math.nan,
    "NoneType": type(None),
    "torch": torch,
    "device": torch.device,
    "pytree": pytree,
}
"""The globals that every generated function has, to which `nested` adds what
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
        self.values: dict[str, AnyValue] = {}
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

    def name_of(self, obj: AnyValue, hint: str = "") -> str:
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

    def _find(self, obj: AnyValue, hint: str) -> str:
        """A path in torch, the name of a builtin, or a global bound to it."""
        text = _get_qualified_name(obj)
        if text.startswith("torch.") and is_from_torch(obj):
            if RULE.get() == "torch" or resolves_to(text, obj):
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

    def bind(self, hint: str, obj: AnyValue) -> str:
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

    def constant(self, value: AnyValue) -> str:
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

    def claim(self, name: str, obj: AnyValue) -> None:
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


def _key(obj: AnyValue) -> Hashable:
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


# -- how names are written ----------------------------------------------------


def as_python_reads(name: str) -> str:
    """An identifier in the form in which Python reads it: `fi` for `ﬁ`."""
    return name if name.isascii() else unicodedata.normalize("NFKC", name)


def exact(text: str) -> str:
    """The characters of `text`, even if its class prints something else."""
    return text if type(text) is str else str.__str__(text)


@functools.lru_cache(maxsize=4096)
def is_attribute_name(name: str) -> bool:
    """Whether `x.name` is the attribute `name` of x.

    A keyword is not, and neither is an identifier that Python would read as
    another one: it takes compatibility characters apart.
    """
    if not name.isidentifier() or name in _KEYWORDS:
        return False
    return as_python_reads(name) == name


def quoted(text: str) -> str:
    """A string literal, in double quotes if it needs no escapes."""
    plain = repr(text)
    return f'"{text}"' if plain == f"'{text}'" and '"' not in text else plain
