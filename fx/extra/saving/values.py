"""Extra: values as data of JSON, and data as values again.

Numbers, strings, None and the lists of a node are themselves in JSON.  All
else is an object with one key, which says what it is:

    {"node": "x"}   {"tuple": [1, 2]}   {"name": "torch.float32"}

Only exact types that are listed here are written, so that nothing of a user's
class runs when they are read.  A dict is a list of pairs, because its keys may
be numbers, and those of JSON are strings.  A list of JSON is the immutable one
that a node holds; a plain one, in notes, is `{"list": [1, 2]}`.
"""

from __future__ import annotations

import re
import types
import typing
from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import reduce
from operator import or_
from types import NoneType
from typing import Final

import torch
from torch import nn
from torch.return_types import all_return_types

from ...immutable_collections import immutable_dict, immutable_list
from ...node import Node
from ...use_def.text import _type_repr
from ...use_def.values import AnyValue
from .allowed import Allowed

_THEMSELVES: Final = (NoneType, bool, int, float, str)

_MOST_BITS: Final = 2_000
"""Some 600 digits.  Python can be told to read no more than 640."""

# An annotation in quotes may be evaluated: by names, dots and brackets alone.
_annotation = re.compile(r"""(?=.*\w)[\w\s.,|'"\[\]]*""")


def _itself(value: AnyValue) -> AnyValue:
    """A value that JSON has, too; refuses what Python would not read again."""
    if type(value) is int and value.bit_length() > _MOST_BITS:
        raise ValueError(
            f"an int of {value.bit_length()} bits has no form: Python reads no "
            "number of so many digits from text"
        )
    return value


def _args(value: AnyValue) -> list[AnyValue]:
    """The arguments that make a value of a built-in class."""
    if type(value) is complex:
        return [value.real, value.imag]
    return list(value.__reduce__()[1])


_ITEMS: Final = (tuple, list, set, frozenset, bytes, torch.Size)
_DICTS: Final = (dict, immutable_dict, OrderedDict)
_ARGS: Final = (slice, range, complex, torch.device)
_PARTS: Final[dict[type, Callable[[AnyValue], Iterable[AnyValue]]]] = {
    **dict.fromkeys(_ITEMS, list),
    **dict.fromkeys(_DICTS, lambda value: map(immutable_list, value.items())),
    **dict.fromkeys(_ARGS, _args),
}
"""Exact type → what its values are made of."""
_MAKE: Final[dict[str, Callable[[list[AnyValue]], AnyValue]]] = {
    **{kind.__name__: kind for kind in (*_ITEMS, *_DICTS)},
    "slice": lambda parts: slice(*parts),
    "range": lambda parts: range(*parts),
    "complex": lambda parts: complex(*parts),
    "device": lambda parts: torch.device(*parts),
    "namedtuple": lambda parts: _named_tuple(*parts),
    "union": lambda parts: reduce(or_, map(_of_a_type, parts)),
    "generic": lambda parts: _of_a_type(parts[0])[tuple(parts[1:])],
}
"""The key of an object in JSON → what makes a value of its parts."""


class Codec:
    """Writes values as data, and reads them.

    Attributes:
        allowed: the classes and functions that may be named.
        nodes: the nodes that may be named.
        weights: name → tensor, kept beside the text.
    """

    def __init__(
        self, allowed: Allowed, weights: Weights, *, notes: bool = False
    ) -> None:
        """Make a codec that knows no nodes.

        Args:
            allowed: the classes and functions that may be named.
            weights: the tensors.
            notes: for `meta`: then a class that is not allowed is written by
                its name, as a string, and tensors are refused.
        """
        self.allowed = allowed
        self.weights = weights
        self.nodes: dict[str, Node] = {}
        self._notes = notes

    def data(self, value: AnyValue) -> AnyValue:
        """A value as data of JSON.

        Raises:
            ValueError: the value, or one inside, has no such form.

        Cost: O(size of `value`).
        """
        kind = type(value)
        if kind in _THEMSELVES:
            return _itself(value)
        if kind is immutable_list:
            return [self.data(item) for item in value]
        if isinstance(value, Node):
            if self.nodes.get(value.name) is not value:
                raise ValueError(f"{value} is not in the graph")
            return {"node": value.name}
        if kind in _PARTS:
            return self._parts(kind.__name__, _PARTS[kind](value))
        if isinstance(value, tuple) and (
            hasattr(kind, "_fields") or kind in all_return_types
        ):
            named = {"name": self.allowed.name_of(kind)}
            return {"namedtuple": [named, *map(self.data, value)]}
        if isinstance(value, torch.Tensor) and not self._notes:
            return {"tensor": self.weights.key(value, "constant")}
        if args := typing.get_args(value):
            if isinstance(value, types.UnionType):
                return self._parts("union", args)
            return self._parts("generic", [_generic(value), *args])
        return self._name(value)

    def _parts(self, tag: str, parts: Iterable[AnyValue]) -> AnyValue:
        """What is made of parts, as data; the items of a set are sorted."""
        data = [self.data(part) for part in parts]
        return {tag: sorted(data, key=repr) if "set" in tag else data}

    def _name(self, value: AnyValue) -> AnyValue:
        """A function, a class or a dtype, as data."""
        try:
            return {"name": self.allowed.name_of(value)}
        except ValueError:
            if self._notes and isinstance(value, type):
                return _type_repr(value)
            if hasattr(value, "__name__"):  # a function or class
                raise
        raise ValueError(
            f"a {_type_repr(type(value))} has no form as data: use numbers, "
            "strings, tensors, and tuples, lists, dicts and slices of them"
        )

    def value(self, data: AnyValue) -> AnyValue:
        """The value that data of JSON stand for.

        Raises:
            Exception: they stand for nothing.

        Cost: O(size of `data`).
        """
        if type(data) in _THEMSELVES:
            return data
        if type(data) is list:
            return immutable_list(map(self.value, data))
        [(tag, content)] = data.items()
        if tag == "node":
            return self.nodes[content]
        if tag == "tensor":
            return self.weights[content]
        if tag != "name":
            return _MAKE[tag](list(map(self.value, content)))
        if content in self.allowed.named:
            return self.allowed.named[content]
        return self.allowed.function(content)

    def annotation(self, data: AnyValue) -> AnyValue:
        """The type of a node."""
        kind = self.value(data)
        if isinstance(kind, str) and not _annotation.fullmatch(kind):
            raise ValueError(f"{kind!r} is not a type")
        return kind


class Weights(dict[str, torch.Tensor]):
    """Tensors by name, each once, so that what was shared is shared.

    Views keep sharing storage too, because `torch.save` writes all tensors
    together.  Attributes that a user has given to a tensor are left out: with
    them its pickle could not be read with `weights_only=True`.
    """

    def __init__(self, known: dict[str, torch.Tensor] | None = None) -> None:
        """Make it of tensors that were read, or empty."""
        super().__init__(known or {})
        self._keys: dict[torch.Tensor, str] = {}  # by identity

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
        if tensor in self._keys:
            return self._keys[tensor]
        key = wish
        while key in self:
            key += "'"
        self[key] = bare(tensor)
        self._keys[tensor] = key
        return key


def _generic(kind: AnyValue) -> object:
    """The class, or the name in `typing`, that a generic type begins with."""
    origin, name = typing.get_origin(kind), getattr(kind, "_name", None)
    # typing.List[int] is not written list[int]; Optional takes one type only.
    generic = None if name == "Optional" else vars(typing).get(str(name))
    return origin if generic is None else generic


def _of_a_type(value: AnyValue) -> AnyValue:
    """What an annotation is made of; not a tensor.

    `{"generic": …}` of a tensor would be an index into it, which can be as
    large as the file wants.
    """
    known = value is None or isinstance(value, _TYPES)
    if known or type(value).__module__ == "typing":
        return value
    raise TypeError(f"{value!r} is not a type")


_TYPES: Final = (type, types.GenericAlias, types.UnionType)


def _named_tuple(kind: AnyValue, *items: AnyValue) -> AnyValue:
    """A named tuple, of a class that was allowed; nothing else is called."""
    if kind in all_return_types:
        return kind(items)
    make = getattr(kind, "_make", None)
    if make is None or not issubclass(kind, tuple):
        raise TypeError(f"{_type_repr(kind)} is not a named tuple's class")
    return make(items)


def bare(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, without the attributes that a user may have given it."""
    grad = tensor.requires_grad
    if isinstance(tensor, nn.Parameter):
        return nn.Parameter(tensor.detach(), grad)
    return tensor.detach().requires_grad_(grad)
