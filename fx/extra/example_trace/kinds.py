"""Extra: which values a trace takes apart, and how it puts them together.

What a program is given or returns is one of these:

- A constant, which nobody can change: a number, a string, None, a dtype, a
  device, a range, a path, a member of an enum, a number of numpy, a frozenset
  of constants. Two are equal if Python can tell no difference: 0.0 is not -0.0,
  1 is not True, and a NaN is another one.
- Compared by identity, and what it holds is not compared: a function, a type, a
  module, a generator of random numbers, a plain object().
- Taken apart: what torch's pytree knows (tuples, named tuples, lists, dicts,
  OrderedDict, defaultdict, deque) or was told of by `register_pytree_node`;
  slices, partials, bound methods, sets of constants; and any object whose class
  keeps all that it has in attributes.

Of anything else, such as an array, an iterator or a class below dict, nobody
could tell whether it is still what it was. It is refused.

A value that is taken apart has items, and a `form`, which is what else has to
be the same: the keys of a dict, the names of the attributes. A class that is
written in C may keep more than that, and so may one with a `__new__`.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import operator
import struct
import sys
import types
import typing
from collections import defaultdict, deque, namedtuple
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Final, NamedTuple

import torch
from torch import nn

from ...torch_private import pytree
from ...torch_private.overloads import OpOverload, OpOverloadPacket
from ...use_def.values import Value

# -- constants -----------------------------------------------------------------


_VALUES: Final = (
    *(int, float, complex, bool, str, bytes, range, types.NoneType),
    *(types.EllipsisType, types.NotImplementedType, torch.dtype),
    *(torch.device, torch.layout, torch.memory_format),
)
"""Exact types of most constants."""

_BY_IDENTITY: Final = (
    *(types.FunctionType, types.MethodDescriptorType, type, types.ModuleType),
    *(types.WrapperDescriptorType, type(functools.cache(len)), nn.Module),
    *(torch.Generator, torch.jit.ScriptFunction, OpOverload, OpOverloadPacket),
)
_METHODS: Final = (types.BuiltinFunctionType, types.MethodType)


def is_constant(value: Value) -> bool:
    """Whether nobody can change a value, or it is compared by identity."""
    cls = type(value)
    if cls in _VALUES:
        return True
    if cls in (tuple, frozenset):
        return all(map(is_constant, value))
    if isinstance(value, _of_numpy()):
        return value.dtype.kind not in "OV"
    return isinstance(value, (enum.Enum, PurePath)) or by_identity(value)


def by_identity(value: Value) -> bool:
    """Whether a value is compared by identity."""
    if isinstance(value, _METHODS):  # and not that of a list, say
        return value.__self__ is None or by_identity(value.__self__)
    return isinstance(value, _BY_IDENTITY) or type(value) is object


def is_same(one: Value, two: Value) -> bool:
    """Whether Python can tell no difference between constants, or forms."""
    cls: Value = type(one)
    if cls is not type(two) or one is two:
        return one is two
    if cls is float:
        return struct.pack("d", one) == struct.pack("d", two)
    if cls is complex:
        return is_same((one.real, one.imag), (two.real, two.imag))
    if cls is range:
        return repr(one) == repr(two)
    if cls is dict:
        one, two = [*one.items()], [*two.items()]
    if cls in (tuple, list, frozenset, dict):
        return len(one) == len(two) and all(map(is_same, one, two))
    if isinstance(one, _of_numpy()):
        one, two = (one.dtype, one.tobytes()), (two.dtype, two.tobytes())
    elif isinstance(one, torch.Tensor) or by_identity(one):
        return isinstance(one, _METHODS) and bool(one == two)
    try:
        return bool(one == two)
    except Exception:  # an array, say
        return False


def _of_numpy() -> Value:
    """The class of numpy's numbers; none if nobody has imported numpy."""
    return getattr(sys.modules.get("numpy"), "generic", ())


# -- what is taken apart -------------------------------------------------------


def opened(value: Value) -> tuple[Value, Sequence[Value]] | None:
    """The form and the items of a value; None if it is not taken apart."""
    cls: Value = type(value)
    if isinstance(value, dict | set) and not all(map(is_constant, value)):
        return None  # its keys may change
    if (node := _node(cls)) is None:
        return _attributes(value) if _is_object(cls) else None
    has_items = isinstance(value, (tuple, functools.partial))
    if has_items and cls is not tuple and _attributes(value)[0]:
        return None  # and more than those
    items, form = node.flatten_fn(value)
    return form, [*items]


def keys_of(cls: Value, form: Value, count: int) -> Sequence[Value]:
    """What the items of a value are found by."""
    if _is_object(cls) or issubclass(cls, dict):
        keys = form[1] if cls is defaultdict else form
        if isinstance(keys, list | tuple) and len(keys) == count:
            return keys
    return getattr(cls, "_fields", range(count))


def is_taken_apart(cls: Value) -> bool:
    """Whether values of a class are."""
    return isinstance(cls, type) and (_is_object(cls) or _node(cls) is not None)


def empty(cls: Value) -> Value:
    """An object of a class, without attributes; None if pytree makes it."""
    return None if _node(cls) else cls.__new__(cls)


def made(cls: Value, form: Value, items: Sequence[Value]) -> Value:
    """What pytree makes of a form and items."""
    return _node(cls).unflatten_fn([*items], form)


def fill(value: Value, form: Value, items: Sequence[Value]) -> None:
    """Let a container, or an object, have this form and these items."""
    cls: Value = type(value)
    if _node(cls) is not None:
        new = made(cls, form, items)
        if isinstance(value, dict | list | set | deque):
            add: Value = getattr(value, "update", getattr(value, "extend", 0))
            value.clear()
            add(new)
        if cls is defaultdict:
            untyped: Value = value
            untyped.default_factory = new.default_factory
        form, items = _attributes(new)
    own, slots = _dict_of(value), _slots(cls)
    own.clear()
    for member in slots.values():
        with contextlib.suppress(AttributeError):  # it has none now
            member.__delete__(value)
    for name, item in zip(form, items, strict=True):
        if name in slots:
            slots[name].__set__(value, item)
        else:
            own[name] = item


def attributes_of(value: Value) -> dict[str, Value]:
    """The attributes of an object that is taken apart by them; else none."""
    is_one = not is_constant(value) and not _node(type(value))
    found = opened(value) if is_one else None
    return dict(zip(*found, strict=True)) if found else {}


def _node(cls: Value) -> Value:
    """What pytree knows of a class; None if it does not know it."""
    nodes = pytree.SUPPORTED_NODES
    is_named = issubclass(cls, tuple) and hasattr(cls, "_fields")
    return (
        _OURS.get(cls) or nodes.get(cls) or nodes.get(is_named and namedtuple)
    )


class _Node(NamedTuple):
    """What pytree would know of a class."""

    flatten_fn: Callable[[Value], tuple[Sequence[Value], Value]]
    unflatten_fn: Callable[[Sequence[Value], Value], Value]


def _by_names(make: Callable[..., Value], *names: str) -> _Node:
    """The node for a class whose objects are made of some attributes."""
    get: Value = operator.attrgetter(*names)
    return _Node(lambda v: (get(v), None), lambda items, _: make(*items))


def _partial(function: Value, args: Value, keywords: Value) -> Value:
    """A partial that has these very keywords, and not a copy."""
    new: Value = functools.partial(function)
    new.__setstate__((function, args, keywords, None))
    return new


_OURS: Final[dict[Value, _Node]] = {
    torch.Size: _Node(lambda v: (v, None), lambda items, _: torch.Size(items)),
    set: _Node(lambda value: ((), [*value]), lambda _, items: {*items}),
    slice: _by_names(slice, "start", "stop", "step"),
    types.MethodType: _by_names(types.MethodType, "__func__", "__self__"),
    functools.partial: _by_names(_partial, "func", "args", "keywords"),
}
"""What torch's pytree lacks, or makes a plain tuple of."""


_HEAP, _IMMUTABLE = 1 << 9, 1 << 8
"""Flags of a class that is no static one of C, and of one of C like those."""


def _is_of_python(cls: Value) -> bool:
    """Whether a class was made by a `class` statement."""
    return bool(cls.__flags__ & (_HEAP | _IMMUTABLE) == _HEAP)


@functools.lru_cache(maxsize=1024)
def _is_object(cls: Value) -> bool:
    """Whether objects of a class have attributes, and nothing else."""
    base: Value = cls
    while base is typing.Generic or _is_of_python(base):
        base = base.__base__
    return base in _BASES and cls.__new__ is base.__new__


@functools.lru_cache(maxsize=1024)
def _slots(cls: Value) -> dict[str, Value]:
    """The attributes that objects of a class have outside of a dict."""
    return {
        name: member
        for each in filter(_is_of_python, reversed(cls.__mro__))
        for name, member in vars(each).items()
        if isinstance(member, types.MemberDescriptorType)
    }


def _dict_of(value: Value) -> dict[str, Value]:
    """The attributes that an object has in a dict."""
    cls: Value = type(value)
    return value.__dict__ if cls.__dictoffset__ else {}


def _attributes(value: Value) -> tuple[Value, Sequence[Value]]:
    """The names and values of an object's attributes."""
    found = {**_dict_of(value)}
    cls: Value = type(value)
    for name, member in _slots(cls).items():
        with contextlib.suppress(AttributeError):  # it has none now
            found[name] = member.__get__(value)
    return tuple(found), [*found.values()]


_BASES: Final = (object, types.SimpleNamespace)
"""The classes of C whose objects have attributes, and nothing else."""
