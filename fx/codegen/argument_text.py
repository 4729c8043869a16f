"""Stage 05, codegen: arguments and types written as Python.

Generated code is executed, so `repr` is not good enough for a constant.  The
`repr` of a tensor is not an expression, and a user's class can return any
code from its `__repr__`.  So constants of certain exact types are written
here, as torch.fx writes them, and every other object becomes a global of the
code, so that the code uses the very same object:

    add = torch.add(x, 1.5);                       # written out
    quantize = x.quantize(_constant_decimal);      # decimal.Decimal("0.1")

So is each class in the type of a node, which becomes an annotation: those of
parameters and of the return value are evaluated when the generated function is
defined.  `typing.List[torch.Tensor]` is written `typing_List[torch.Tensor]`.

Types are exact, because a subclass may print otherwise.  Python's parser
accepts 200 nested brackets, so a deeper container without a node in it becomes
a global as a whole.  A dataclass is written out only if there is a node in it;
without one it is bound with whatever its `__post_init__` has done.

Infinities and nan are not literals, so the code has globals for them.  A
complex number with a zero part is written as a call, since a sum such as
`(-0+1j)` may lose the sign of the zero.  Combined flags of an Enum, and members
whose name is not an identifier or leads to another member, are bound.
"""

from __future__ import annotations

import cmath
import dataclasses
import math
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum
from types import (
    BuiltinFunctionType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    UnionType,
    WrapperDescriptorType,
)
from typing import ClassVar, Final, NamedTuple

import torch

from ..immutable_collections import immutable_dict, immutable_list
from ..node import Node
from ..torch_private.overloads import (
    HigherOrderOperator,
    OpOverload,
    OpOverloadPacket,
)
from ..use_def.arguments import holds_node
from ..use_def.text import _type_repr, in_order, resolves_to
from ..use_def.values import AnyValue, overrides_new
from .names import GlobalNames, is_attribute_name

_BY_REPR: Final = frozenset((str, int, bool, bytes, type(None)))
"""Exact types whose `repr` is right as it is."""

_FUNCTIONS: Final = (
    type,
    FunctionType,
    BuiltinFunctionType,
    MethodType,
    MethodDescriptorType,
    WrapperDescriptorType,
    OpOverload,
    OpOverloadPacket,
    HigherOrderOperator,
)
"""Types of objects that know their own name."""


class ArgumentPrinter:
    """Writes arguments: nodes by name, constants exactly or as globals."""

    def __init__(
        self, variables: Mapping[Node, str], names: GlobalNames
    ) -> None:
        """Make a printer for one generated function.

        Args:
            variables: the names of the nodes.
            names: where constants that are not written out are bound.
        """
        self._variables = variables
        self._names = names

    def text(self, value: AnyValue) -> str:
        """An argument as a Python expression.

        Evaluated with `names.values` as globals, the expression is `value`
        with the nodes' values for nodes: of the same types, and equal; what
        is not written out is the very same object.

        Args:
            value: an argument of a node, of any kind.

        Cost: O(size of `value`).
        """
        kind = type(value)
        if kind is Node:
            return self._variables[value]
        if kind in _BY_REPR:
            try:
                return repr(value)
            except ValueError:  # an int of more digits than Python reads
                return self._names.constant(value)
        write = self._WRITE.get(kind)
        if write is None:
            write = self._WRITE.get(_made_with(value, kind))
        return write(self, value) if write else self._named(value)

    def items(self, values: Iterable[AnyValue]) -> str:
        """Expressions with commas between them."""
        return ", ".join(map(self.text, values))

    # -- scalars -----------------------------------------------------------

    def _float(self, value: float) -> str:
        """A float, to the last bit."""
        if math.isfinite(value):
            return repr(value)
        if math.isnan(value):
            return self._names.spelled["nan"]
        return f"{'-' if value < 0 else ''}{self._names.spelled['inf']}"

    def _complex(self, value: complex) -> str:
        """A complex number, to the last bit."""
        if is_sum(value):
            return repr(value)
        parts = self.items((value.real, value.imag))
        return f"{self._names.builtin('complex')}({parts})"

    # -- containers --------------------------------------------------------

    def _tuple(self, value: tuple[AnyValue, ...]) -> str:
        """A tuple, or what follows the class of a named one."""
        comma = "," if len(value) == 1 else ""
        return f"({self.items(value)}{comma})"

    def _list(self, value: list[AnyValue]) -> str:
        """A list, mutable or not."""
        return f"[{self.items(value)}]"

    def _dict(self, value: dict[AnyValue, AnyValue]) -> str:
        """A dict, mutable or not."""
        pairs = [
            f"{self.text(key)}: {self.text(item)}"
            for key, item in value.items()
        ]
        return f"{{{', '.join(pairs)}}}"

    def _set(self, value: Collection[AnyValue]) -> str:
        """A set, frozen or not; the empty one has no syntax."""
        items = [self.text(item) for item in value]
        text = f"{{{', '.join(in_order(value, items))}}}" if value else ""
        if value and type(value) is set:
            return text
        return f"{self._names.builtin(type(value).__name__)}({text})"

    def _slice(self, value: slice) -> str:
        """A slice; what is in it may be nodes."""
        parts = self.items((value.start, value.stop, value.step))
        return f"{self._names.builtin('slice')}({parts})"

    def _range(self, value: range) -> str:
        """A range, its step left out if it is 1."""
        parts = [value.start, value.stop, value.step]
        parts = parts[:2] if value.step == 1 else parts
        return f"{self._names.builtin('range')}({self.items(parts)})"

    def _size(self, value: torch.Size) -> str:
        """The shape of a tensor, which is a subclass of tuple."""
        return f"{self._names.in_torch('torch.Size')}([{self.items(value)}])"

    def _named_tuple(self, value: tuple[AnyValue, ...]) -> str:
        """A call of the named tuple's class, or of its `_make`."""
        cls, items = self._names.name_of(type(value)), self._tuple(value)
        if overrides_new(type(value)):
            return f"{cls}._make({items})"
        return f"{cls}{items}"

    def _dataclass(self, value: AnyValue) -> str:
        """A call of the dataclass, with a keyword for each field."""
        fields = [
            f"{field.name}={self.text(getattr(value, field.name))}"
            for field in dataclasses.fields(value)
            if field.init
        ]
        return f"{self._names.name_of(type(value))}({', '.join(fields)})"

    # -- what has a name ---------------------------------------------------

    def _of_torch(self, value: object) -> str:
        """A dtype, layout or memory format: a name in the module torch."""
        path = repr(value)
        if resolves_to(path, value):
            return self._names.in_torch(path)
        return self._names.constant(value)

    def _device(self, value: torch.device) -> str:
        """A call of torch.device."""
        return self._names.spelled["device"] + repr(value).removeprefix(
            "device"
        )

    def _named(self, value: AnyValue) -> str:
        """A function, class, operator or Enum member; else a global."""
        kind = type(value)
        if issubclass(kind, Node):
            return self._variables[value]
        if issubclass(kind, Enum):
            return self._enum(value)
        if issubclass(kind, _FUNCTIONS):
            hint = _type_repr(value) if issubclass(kind, type) else ""
            return self._names.name_of(value, hint)
        return self._names.constant(value)

    def _enum(self, value: Enum) -> str:
        """A member of an Enum; combined flags are not members."""
        cls, name = type(value), value._name_
        if cls.__members__.get(name) is value and is_attribute_name(name):
            return f"{self._names.name_of(cls, cls.__name__)}.{name}"
        return self._names.constant(value)

    # -- which is which ----------------------------------------------------

    _WRITE: ClassVar[
        dict[object, Callable[[ArgumentPrinter, AnyValue], str]]
    ] = {
        float: _float,
        complex: _complex,
        type(...): lambda self, _: self._names.builtin("Ellipsis"),
        range: _range,
        torch.Size: _size,
        torch.dtype: _of_torch,
        torch.layout: _of_torch,
        torch.memory_format: _of_torch,
        torch.qscheme: _of_torch,
        torch.device: _device,
        tuple: _tuple,
        list: _list,
        immutable_list: _list,
        dict: _dict,
        immutable_dict: _dict,
        set: _set,
        frozenset: _set,
        slice: _slice,
        NamedTuple: _named_tuple,
        dataclasses.dataclass: _dataclass,
    }
    """Exact type, or what a class was made with -> how a value is written."""


def is_sum(value: complex) -> bool:
    """Whether a complex number is written as a sum, `(1+2j)`.

    A sum can lose the sign of a zero, and can only be read if both parts are
    finite; else it is a call, `complex(0.0, inf)`.
    """
    return bool(value.real and value.imag) and cmath.isfinite(value)


def _made_with(value: AnyValue, kind: type) -> object:
    """What the class of a value was made with, if it holds arguments."""
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return NamedTuple
    if dataclasses.is_dataclass(kind) and holds_node(value):
        return dataclasses.dataclass
    return None


# -- types -------------------------------------------------------------------

_ALIASES: Final[dict[object, AnyValue]] = {
    alias.__origin__: alias
    for alias in (
        getattr(typing, name)
        for name in ("List", "Dict", "Set", "FrozenSet", "Tuple")
    )
}
"""`list` -> `typing.List`, for types that were written in the old way."""

_UNION: Final[AnyValue] = typing.Union
"""What `int | None` is written with: TorchScript reads no `|`."""


def type_text(kind: AnyValue, names: GlobalNames) -> str:
    """A type, or another object that annotates something, as code.

    An annotation may be any object.  One with parts is taken apart, so that its
    classes can be named one by one; a class gets its name; all else is bound,
    and so is a text between quotes, as in torch.fx.  `typing.List[int]` and
    `list[int]` keep their own form.  `int | None` and `Optional[int]` are
    written alike, because TorchScript does not find the parts of the first.

    Three things look like generic types and are not: a class with an attribute
    `__origin__`, the list in `Callable[[int], str]`, and `Annotated`, whose
    `__origin__` is the type that it annotates.

    Args:
        kind: a class, a generic type with arguments, `int | None`, a string,
            or any object.
        names: where its parts get their names.

    torch.fx: graph.py, type_repr
    """
    if isinstance(kind, list):  # the parameters of typing.Callable
        return f"[{_join(kind, names)}]"
    if type(kind) is tuple and not kind:
        return "()"
    if isinstance(kind, UnionType):
        return _generic(kind, _UNION, names)
    origin = None
    if not isinstance(kind, type) and not hasattr(kind, "__metadata__"):
        origin = getattr(kind, "__origin__", None)
    return (
        _plain(kind, names) if origin is None else _generic(kind, origin, names)
    )


def _join(kinds: Iterable[AnyValue], names: GlobalNames) -> str:
    """Type arguments."""
    return ",".join(type_text(kind, names) for kind in kinds)


def _generic(kind: AnyValue, origin: AnyValue, names: GlobalNames) -> str:
    """`list[int]`, `typing.Union[int, str]`, `int | str`."""
    if type(kind).__module__ == "typing" and hasattr(kind, "__args__"):
        origin = _ALIASES.get(origin, origin)
    name = names.name_of(origin, _type_repr(origin))
    args = typing.get_args(kind) or getattr(kind, "__args__", ())
    return f"{name}[{_join(args, names)}]" if args else name


def _plain(kind: AnyValue, names: GlobalNames) -> str:
    """A class, or another object, bound as a global."""
    if isinstance(kind, type | FunctionType):
        return names.name_of(kind, _type_repr(kind))
    cls = type(kind)
    if cls in _BY_REPR or kind is ... or cls.__module__ == "typing":
        return names.bind(_type_repr(kind), kind)
    return names.constant(kind)
