"""Stage 05, codegen: values as data of JSON, and data as values again.

Numbers, strings, None and the lists of a node are themselves in JSON.  All
else is an object with one key, which says what it is:

    {"node": "x"}   {"tuple": [1, 2]}   {"torch": "float32"}

Only exact types that are listed here are written, so that nothing of a user's
class runs when they are read.
"""

from __future__ import annotations

import itertools
import math
import re
import sys
import types
import typing
from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import reduce
from itertools import count
from operator import or_
from types import NoneType
from typing import Final, NamedTuple

import torch
from torch import nn

from ..immutable_collections import immutable_dict, immutable_list
from ..node import Node
from ..text.qualified_names import _type_repr
from ..usedef.values import Value
from .allowed import Allowed

_THEMSELVES: Final = (NoneType, bool, int, float, str)
_OF_TORCH: Final = (
    torch.dtype,
    torch.layout,
    torch.memory_format,
    torch.qscheme,
)
_FUNCTIONS: Final = (
    types.BuiltinFunctionType,
    types.FunctionType,
    torch._ops.OpOverload,
)
_ROOM: Final = __name__.rpartition(".saving.")[0]

# An annotation in quotes may be evaluated: by names, dots and brackets alone.
_annotation = re.compile(r"""(?=.*\w)[\w\s.,|'"\[\]]*""")


class _Form(NamedTuple):
    """How values of an exact type are taken apart and made."""

    parts: Callable[[Value], Iterable[Value]]
    make: Callable[[list[Value]], Value]


def _pairs(value: dict[Value, Value]) -> Iterable[Value]:
    """The items of a dict, each as a list."""
    return map(immutable_list, value.items())


_FORMS: Final[dict[type, _Form]] = {
    tuple: _Form(list, tuple),
    list: _Form(list, list),
    set: _Form(list, set),
    frozenset: _Form(list, frozenset),
    dict: _Form(_pairs, dict),
    immutable_dict: _Form(_pairs, immutable_dict),
    OrderedDict: _Form(_pairs, OrderedDict),
    torch.Size: _Form(list, torch.Size),
    slice: _Form(lambda s: (s.start, s.stop, s.step), lambda p: slice(*p)),
    range: _Form(lambda r: (r.start, r.stop, r.step), lambda p: range(*p)),
    complex: _Form(lambda z: (z.real, z.imag), lambda p: complex(*p)),
    bytes: _Form(list, bytes),
    torch.device: _Form(lambda d: [str(d)], lambda p: torch.device(*p)),
    type(...): _Form(lambda _: (), lambda _: ...),
}
_MAKE: Final[dict[str, Callable[[list[Value]], Value]]] = {
    **{kind.__name__: form.make for kind, form in _FORMS.items()},
    "TensorMetadata": lambda p: _tensor_metadata()(*p),
    "union": lambda p: reduce(or_, p),
    "generic": lambda p: p[0][tuple(p[1:])],
}
"""The key of an object in JSON → what makes a value of its parts."""


class Codec:
    """Writes values as data, and reads them.

    Attributes:
        allowed: the classes that may be named.
        nodes: the nodes that may be named.
        weights: name → tensor, kept beside the text.
        in_meta: whether the values are notes: then a class that is not
            allowed is written by its name and read as that string, and
            tensors are refused.
    """

    def __init__(self, allowed: Allowed, weights: Weights) -> None:
        """Make a codec that knows no nodes."""
        self.allowed = allowed
        self.weights = weights
        self.nodes: dict[str, Node] = {}
        self.in_meta = False
        self._named: dict[str, Callable[[str], Value]] = {
            "node": lambda name: self.nodes[name],
            "class": self._class,
            "function": allowed.function,
            "float": float,
            "torch": _of_torch,
            "tensor": weights.__getitem__,
        }

    def data(self, value: Value) -> Value:
        """A value as data of JSON.

        Raises:
            ValueError: the value, or one inside, has no such form.

        Cost: O(size of `value`).
        """
        kind = type(value)
        if kind is float and not math.isfinite(value):
            return {"float": repr(value)}
        if kind in _THEMSELVES:
            return value
        if kind is immutable_list:
            return [self.data(item) for item in value]
        if isinstance(value, Node):
            return {"node": self._node(value)}
        if kind in _FORMS:
            parts = _FORMS[kind].parts(value)
            return {kind.__name__: [self.data(part) for part in parts]}
        if kind in _OF_TORCH:
            return {"torch": str(value).removeprefix("torch.")}
        if isinstance(value, torch.Tensor) and not self.in_meta:
            return {"tensor": self.weights.key(value, "constant")}
        if kind in _FUNCTIONS:
            return {"function": self.allowed.name_of(value)}
        if kind is _tensor_metadata():
            return {"TensorMetadata": [self.data(part) for part in value]}
        return self._class_data(value)

    def _node(self, node: Node) -> str:
        """The name of a node of the graph."""
        if self.nodes.get(node.name) is not node:
            raise ValueError(f"{node} is not in the graph")
        return node.name

    def _class_data(self, value: Value) -> Value:
        """A class or a type made of classes, as data."""
        if name := self.allowed.class_name(value):
            return {"class": name}
        args = list(map(self.data, typing.get_args(value)))
        if args and isinstance(value, types.UnionType):
            return {"union": args}
        if args and (name := self.allowed.class_name(_generic(value))):
            return {"generic": [{"class": name}, *args]}
        is_class = isinstance(value, type)
        what = _type_repr(value if is_class else type(value))
        if is_class and self.in_meta:
            return {"class": what}
        cure = f": if you trust it, give it, as in `allow=({what},)`"
        raise ValueError(
            f"the class {what} is not allowed{cure}"
            if is_class
            else f"a {what} has no form as data: use numbers, strings, "
            "tensors, and tuples, lists, dicts, sets and slices of them"
        )

    def value(self, data: Value) -> Value:
        """The value that data of JSON stand for.

        Raises:
            Exception: they stand for nothing.

        Cost: O(size of `data`).
        """
        if type(data) in _THEMSELVES:
            return data
        if type(data) is list:
            return immutable_list(map(self.value, data))
        [(tag, held)] = data.items()
        if tag in self._named:
            return self._named[tag](held)
        return _MAKE[tag](list(map(self.value, held)))

    def _class(self, name: str) -> object:
        """The class of that name; in notes its name, if it is not allowed."""
        if name in self.allowed.classes:
            return self.allowed.classes[name]
        if self.in_meta:
            return str(name)
        raise ValueError(f"the class {name!r} is not allowed")

    def annotation(self, data: Value) -> Value:
        """The type of a node."""
        kind = self.value(data)
        if isinstance(kind, str) and not _annotation.fullmatch(kind):
            raise ValueError(f"{kind!r} is not a type")
        return kind


class Weights(dict[str, torch.Tensor]):
    """Tensors by name, each once, so that what was shared is shared."""

    def __init__(self, known: dict[str, torch.Tensor] | None = None) -> None:
        """Make it of tensors that were read, or empty."""
        super().__init__(known or {})
        self._keys: dict[int, str] = {}
        self._held: list[torch.Tensor] = []

    def key(self, tensor: torch.Tensor, wish: str) -> str:
        """The name under which a tensor is kept: a new one, or its first.

        Raises:
            ValueError: it is of a subclass, which is a user's code.
        """
        if type(tensor) not in (torch.Tensor, nn.Parameter):
            raise ValueError(
                f"{_type_repr(type(tensor))} is a subclass of torch.Tensor, "
                "which cannot be saved: replace it by a plain tensor"
            )
        if known := self._keys.get(id(tensor)):
            return known
        names = itertools.chain([wish], map(f"{wish}:{{}}".format, count(1)))
        key = next(name for name in names if name not in self)
        bare, grad = tensor.detach(), tensor.requires_grad
        is_parameter = type(tensor) is nn.Parameter
        # Without the attributes that a user may have given the tensor.
        self[key] = nn.Parameter(bare, grad) if is_parameter else bare
        bare.requires_grad_(grad and not is_parameter)
        self._keys[id(tensor)] = key
        self._held.append(tensor)  # so that no other gets its id
        return key


def _generic(kind: Value) -> object:
    """The class, or the name in `typing`, that a generic type begins with."""
    if type(kind).__module__ != "typing":
        return typing.get_origin(kind)
    name = getattr(kind, "_name", None) or "Optional"
    return vars(typing).get("Union" if name == "Optional" else name)


def _of_torch(name: str) -> object:
    """The dtype, layout or memory format `torch.<name>`."""
    found: object = vars(torch)[name]
    if type(found) not in _OF_TORCH:
        raise ValueError(f"torch.{name} is not a dtype or layout")
    return found


def _tensor_metadata() -> Value:
    """The class of the notes that ShapeProp writes, of a later stage."""
    shape_prop = sys.modules.get(f"{_ROOM}.passes.shape_prop")
    return getattr(shape_prop, "TensorMetadata", None)
