"""Stage 02, use-def: what a node's args may contain, and walking over it.

An argument is a Node, a constant, or a container of arguments.  Containers
are tuples (named ones too), lists, dicts, slices and dataclasses, nested as
deep as you like.  Here is the one place that knows these containers:

    map_aggregate(a, fn)   rebuild `a` with each leaf replaced by fn(leaf)
    parts(a)               what is directly inside `a`

`map_arg` in `fx/node.py` does the first for Nodes alone.
"""

from __future__ import annotations

import dataclasses
from collections import ChainMap, UserDict, UserList, deque
from collections.abc import Callable, Iterable
from types import MappingProxyType, SimpleNamespace
from typing import Final, TypeVar, cast, overload

from ..immutable_collections import immutable_dict, immutable_list
from ..linked_list.linked_list import Link
from .values import LEAVES, AnyValue, Argument

NO_KWARGS: Final[immutable_dict[str, Argument]] = immutable_dict()
"""The kwargs of a node without keyword arguments."""

CONTAINERS: Final = (tuple, list, dict, slice)
"""Containers whose items are arguments; a dataclass with a Node is one, too."""

T = TypeVar("T")


@overload
def map_aggregate(
    a: tuple[object, ...], fn: Callable[[Argument], Argument]
) -> tuple[Argument, ...]: ...
@overload
def map_aggregate(
    a: dict[str, T], fn: Callable[[Argument], Argument]
) -> immutable_dict[str, Argument]: ...
@overload
def map_aggregate(
    a: object, fn: Callable[[Argument], Argument]
) -> Argument: ...
def map_aggregate(a: object, fn: Callable[[Argument], Argument]) -> Argument:
    """Rebuild `a` with each leaf, Node or constant, replaced by `fn(leaf)`.

    Args:
        a: an argument. Lists and dicts come back immutable, named tuples keep
            their class, other tuples are plain, dict keys are what they were.
        fn: called once for each leaf, from left to right.

    Raises:
        TypeError: a Node is in a key of a dict, or in a field of a dataclass
            that its constructor does not take; or the constructor of a
            dataclass with a Node inside does not keep what it is given.

    Cost: O(size of `a`).

    torch.fx: node.py, map_aggregate
    """
    kind = type(a)
    if kind in LEAVES or isinstance(a, Link):
        return fn(a)
    rebuild = _REBUILD.get(kind)
    if rebuild is not None:
        return rebuild(a, fn)
    for base in CONTAINERS:
        if isinstance(a, base):
            return _REBUILD[base](a, fn)
    if dataclasses.is_dataclass(a) and not isinstance(a, type):
        return _map_dataclass(a, fn)
    return fn(a)


def _map_tuple(
    a: tuple[object, ...], fn: Callable[[Argument], Argument]
) -> tuple[Argument, ...]:
    """A tuple again; a named tuple keeps its class."""
    items = tuple([map_aggregate(x, fn) for x in a])
    if type(a) is tuple or not hasattr(a, "_fields"):
        return items
    named: tuple[Argument, ...] = cast("AnyValue", type(a))._make(items)
    return named


def _map_list(
    a: list[object], fn: Callable[[Argument], Argument]
) -> immutable_list[Argument]:
    """An immutable list."""
    return immutable_list([map_aggregate(x, fn) for x in a])


def _map_dict(
    a: dict[str, object], fn: Callable[[Argument], Argument]
) -> immutable_dict[str, Argument]:
    """An immutable dict with the same keys, which must not hold a Node."""
    if not a:
        return NO_KWARGS
    for key in a:
        if type(key) is not str:
            map_aggregate(key, _refuse_link)
    return immutable_dict({k: map_aggregate(x, fn) for k, x in a.items()})


def _refuse_link(leaf: Argument) -> Argument:
    """Raise for a Node where `map_aggregate` would not see or keep it."""
    if isinstance(leaf, Link):
        raise TypeError(
            f"Node {leaf} is in a key of a dict, or a field that a dataclass's "
            "constructor does not take, where its use cannot be tracked: let "
            "the dict have it as a value, or put it in another field"
        )
    return leaf


def _map_slice(a: slice, fn: Callable[[Argument], Argument]) -> slice:
    """A slice with start, stop and step mapped."""
    return slice(*[map_aggregate(end, fn) for end in parts(a)])


def _map_dataclass(a: AnyValue, fn: Callable[[Argument], Argument]) -> Argument:
    """A dataclass with Nodes inside is a container; without, a constant."""
    if not holds_node(a):
        return fn(a)
    fields = {}
    for field in dataclasses.fields(a):
        fn_of_field = fn if field.init else _refuse_link
        value = getattr(a, field.name, None)
        fields[field.name] = map_aggregate(value, fn_of_field)
    return constructed(type(a), fields)


def constructed(kind: AnyValue, fields: dict[str, AnyValue]) -> AnyValue:
    """A dataclass with these fields, made by its constructor.

    Raises:
        TypeError: the constructor does not take the fields as they are, or
            changes one, and so would change it again in each copy.
    """
    specs = dataclasses.fields(kind)
    instance = kind(**{f.name: fields[f.name] for f in specs if f.init})
    for name, value in fields.items():
        stored = getattr(instance, name, None)
        plain = type(stored) is type(value) and type(value) in (int, float, str)
        if stored is not value and not (plain and stored == value):
            raise TypeError(
                f"{kind.__qualname__} has {value!r} in its field {name!r}, and "
                "does not have it after it is constructed again, which copies "
                "of a node and generated code do: let the constructor store "
                "what it is given, or pass the fields themselves"
            )
    return instance


_REBUILD: Final[dict[type, Callable[[AnyValue, AnyValue], Argument]]] = {
    tuple: _map_tuple,
    list: _map_list,
    immutable_list: _map_list,
    dict: _map_dict,
    immutable_dict: _map_dict,
    slice: _map_slice,
}


def holds_node(value: AnyValue) -> bool:
    """Whether there is a Node somewhere in an argument.

    Cost: O(size of `value`).
    """
    return found_in(value, (Link,), parts) is not None


def found_in(
    value: AnyValue,
    kinds: tuple[type, ...],
    inside: Callable[[AnyValue], Iterable[AnyValue]],
) -> object:
    """The first object of one of some classes, at any depth, or None.

    Calls no method that the user's classes define, and does not recurse.

    Args:
        value: where to look.
        kinds: the classes.
        inside: what is directly inside a value, such as `parts`.

    Cost: O(size of `value`).
    """
    seen: dict[int, object] = {}
    stack = [value]
    while stack:
        part = stack.pop()
        if issubclass(type(part), kinds):
            return part
        if type(part) not in LEAVES and id(part) not in seen:
            seen[id(part)] = part
            stack += inside(part)
    return None


def parts(value: AnyValue) -> Iterable[AnyValue]:
    """What is directly inside an argument."""
    kind = type(value)
    for base in (tuple, list):
        if issubclass(kind, base):
            return base.__iter__(value)
    if issubclass(kind, dict):
        return dict.values(value)
    if kind is slice:
        return value.start, value.stop, value.step
    if dataclasses.is_dataclass(kind):
        return [getattr(value, f.name, None) for f in dataclasses.fields(kind)]
    return ()


_OTHER_PARTS: Final[dict[type, Callable[[AnyValue], Iterable[AnyValue]]]] = {
    **dict.fromkeys((set, frozenset, deque), iter),
    **dict.fromkeys(
        (dict, MappingProxyType), lambda held: (*held.keys(), *held.values())
    ),
    **dict.fromkeys(
        (UserDict, UserList, ChainMap, SimpleNamespace),
        lambda held: vars(held).values(),
    ),
}
"""How to look into containers in which a Node could not be replaced."""


def parts_of_constant(value: AnyValue) -> Iterable[AnyValue]:
    """What is directly inside a value, also in sets and other containers."""
    for base in type(value).__mro__:
        if base in _OTHER_PARTS:
            return _OTHER_PARTS[base](value)
    return parts(value)
