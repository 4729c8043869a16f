"""Extra: what forward has changed, and put back.

Code may keep a value in an attribute, a list or a dict of a module, and while
it is traced, that value may be a proxy.  Neither the code nor the graph could
use it afterwards, so what holds a proxy is put back when the trace ends, also
after an error.  Numbers that forward counts stay counted, since that is what
one run of it does.

Most modules are as they were, so a module is compared with a copy of its
attributes by `is`, in C.  Lists, dicts, sets, deques, the attributes of a
user's object, also in slots, and those of the class are compared as well.
Objects are followed one step: a module that keeps its trainer refers to the
whole program through it.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections import OrderedDict, deque
from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
)
from functools import partial
from types import MemberDescriptorType, SimpleNamespace
from typing import Final, NamedTuple, TypeAlias

import torch
from torch import nn

from ...recording import frames
from ...tracing.patching import names_of, put
from ...tracing.state import CONSTANTS
from ...tracing.wrapping import find_proxy
from ...use_def.dotted_path import MISSING
from ...use_def.values import AnyValue

Snapshotted: TypeAlias = tuple[str, AnyValue, AnyValue]
"""Something that holds values, and what it held when a trace began: its path
(with a dot at the end if it is a module, an object or a class), it itself, and
a copy. It is the attributes or buffers of a module, a container among its
attributes, the attributes of an object there, or a class."""


_OF_ALL: Final = vars(nn.Module())
"""The attributes that each module has."""

_DICTS: Final = [*map(type, _OF_ALL.values())].count(dict)
_SETS: Final = [*map(type, _OF_ALL.values())].count(set)
"""How many of them are dicts, and sets."""

_OTHERS: Final = frozenset(
    (bool, int, float, str, tuple, type(None), dict, OrderedDict, set)
)
"""Exact types of most attributes of a module, which hold nothing beyond those
that each has."""


_CONTAINERS: Final = (list, tuple, dict, set, deque)
"""Types whose items are looked at."""

_PLAIN: Final = frozenset((bool, int, float, str, type(None), torch.Tensor))
"""Exact types of most items of containers, which hold nothing."""


_HEAP, _IMMUTABLE = 1 << 9, 1 << 8
"""Flags of a class that is not a static one of C, and of one like those."""


def is_of_python(cls: AnyValue) -> bool:
    """Whether a class was made by a `class` statement."""
    return bool(cls.__flags__ & (_HEAP | _IMMUTABLE) == _HEAP)


@functools.lru_cache(maxsize=1024)
def slots_of(cls: AnyValue) -> dict[str, AnyValue]:
    """The attributes that objects of a class have outside of a dict."""
    return {
        name: member
        for each in filter(is_of_python, reversed(cls.__mro__))
        for name, member in vars(each).items()
        if isinstance(member, MemberDescriptorType)
    }


class Slots(MutableMapping[str, AnyValue]):
    """What an object has in slots, by name."""

    def __init__(self, value: AnyValue) -> None:
        """Make it for an object, which may have none."""
        self._value = value
        kind: AnyValue = type(value)
        self._members: dict[str, AnyValue] = slots_of(kind)

    def __getitem__(self, name: str) -> AnyValue:
        """What is in a slot; a KeyError if nothing is."""
        try:
            return self._members[name].__get__(self._value)
        except AttributeError:
            raise KeyError(name) from None

    def __setitem__(self, name: str, value: AnyValue) -> None:
        """Put something into a slot."""
        self._members[name].__set__(self._value, value)

    def __delitem__(self, name: str) -> None:
        """Empty a slot."""
        self._members[name].__delete__(self._value)

    def __iter__(self) -> Iterator[str]:
        """The slots that are not empty."""
        empty = object()
        return (n for n in self._members if self.get(n, empty) is not empty)

    def __len__(self) -> int:
        """How many these are."""
        return sum(1 for _ in self)


def inside(
    path: str, value: AnyValue, known: set[int]
) -> Iterator[tuple[str, AnyValue]]:
    """The containers in a value, and the attributes of objects in it.

    An object in an object is not looked into: a trainer or a logger leads to
    everything that there is.

    Args:
        path: of the value.
        value: may be a container or an object itself.
        known: ids of objects to leave out; those of yielded objects are added.

    Yields:
        The path of each, with a dot if it is an object's, and it.

    Cost: O(items).
    """
    ahead = [(path, value, True)]
    for where, now, is_near in ahead:
        if not isinstance(now, (*_CONTAINERS, Slots)):
            kind: AnyValue = type(now)
            if not (is_near and _is_users(kind)):
                continue
            if slots_of(kind) and id(now) not in known:
                known.add(id(now))
                ahead.append((f"{where}.", Slots(now), False))
            if not kind.__dictoffset__:
                continue
            where, now, is_near = f"{where}.", vars(now), False
        if id(now) not in known:
            known.add(id(now))
            yield where, now
            items = [*(now.values() if isinstance(now, _NAMED) else now)]
            if not _PLAIN.issuperset(map(type, items)):
                ahead += [(where.rstrip("."), item, is_near) for item in items]


@functools.lru_cache(maxsize=1024)
def _is_users(kind: AnyValue) -> bool:
    """Whether objects of a class have attributes that forward may assign."""
    return kind is SimpleNamespace or not (
        issubclass(kind, (type, nn.Module))
        or not (kind.__dictoffset__ or slots_of(kind))
        or is_librarys(kind)
    )


@functools.lru_cache(maxsize=1024)
def is_librarys(kind: AnyValue) -> bool:
    """Whether a class is fx's, torch's, or of Python's library."""
    return is_library(str(kind.__module__))


def is_library(module: str) -> bool:
    """Whether a module of this name is fx's, torch's, or Python's."""
    top = module.partition(".")[0]
    ours = __name__.partition(".")[0]
    return top in ("torch", ours) or top in sys.stdlib_module_names


def held_in(modules: Mapping[nn.Module, str]) -> list[Snapshotted]:
    """What can be assigned to in modules, with what it holds now.

    That is their attributes and buffers, containers and objects in these, and
    the attributes of their classes.

    Args:
        modules: module -> its path.

    Cost: O(modules + what is in them).
    """
    held: list[Snapshotted] = []
    known: set[int] = set()
    classes = set[type]()
    for module, path in modules.items():
        prefix = path and path + "."
        if type(module) not in classes:
            classes.add(type(module))
            for cls in type(module).__mro__:
                if not is_librarys(cls) and id(cls) not in known:
                    known.add(id(cls))
                    held.append((f"{cls.__name__}.", cls, dict(vars(cls))))
        attributes = vars(module)
        held.append((prefix, attributes, attributes.copy()))
        kinds = [*map(type, attributes.values())]
        if (
            not _OTHERS.issuperset(kinds)
            or kinds.count(dict) > _DICTS
            or kinds.count(set) > _SETS
        ):
            for name, value in [*attributes.items()]:  # other threads' traces
                if name in _OF_ALL or type(value) in _PLAIN:
                    continue
                if not isinstance(value, CONSTANTS):
                    held += _containers(prefix + name, value, known)
        # A ScriptModule finds them elsewhere, and they are no dict.
        buffers = module._buffers
        held.append((prefix, buffers, dict(buffers.items())))
    return held


def _containers(
    path: str, value: AnyValue, known: set[int]
) -> Iterator[Snapshotted]:
    """What can be assigned to in the value of an attribute."""
    for where, now in inside(path, value, known):
        if isinstance(now, _NAMED):
            yield where, now, dict(now)
        elif not isinstance(now, tuple):
            before = set(now) if isinstance(now, set) else [*now]
            yield where, now, before


_NAMED: Final = (dict, Slots)
"""Types of what has its values by name."""


class StateChange(NamedTuple):
    """A value that is not what it was when the trace began.

    Attributes:
        path: of the attribute, list or dict that has it.
        value: what is there now; None if it was removed.
        undo: makes it what it was.
    """

    path: str
    value: AnyValue
    undo: Callable[[], None]


def changes(held: Iterable[Snapshotted]) -> Iterator[StateChange]:
    """The changes of what is held: those of a list are told as one.

    Cost: O(values held), but all of it is done in C.
    """
    for path, now, before in held:
        if not isinstance(before, dict):
            is_set = isinstance(before, set)
            same = len(now) == len(before) and (
                now == before if is_set else all(map(operator.is_, now, before))
            )
            if not same:
                yield StateChange(path, [*now], partial(_refill, now, before))
            continue
        has = names_of(now)
        if len(has) != len(before) or any(
            map(operator.is_not, has.values(), before.values())
        ):
            names = dict.fromkeys((*before, *has))
            for name in names:
                old, new = before.get(name, MISSING), has.get(name, MISSING)
                if old is not new and not _is_pythons(now, name):
                    is_module = not path or path.endswith(".")
                    where = f"{path}{name}" if is_module else path
                    value = None if new is MISSING else new
                    undo = partial(put, now, name, old)
                    yield StateChange(where, value, undo)


def put_back_proxies(changed: Iterable[StateChange]) -> None:
    """Let what held other values when a trace began hold no proxies."""
    for change in changed:
        if _holds_proxy(change.value):
            change.undo()


def _holds_proxy(value: AnyValue) -> bool:
    """Whether there is a proxy in a value, or in objects and sets there."""
    items = [
        item
        for _, now in inside("", value, set())
        for item in (now.values() if isinstance(now, _NAMED) else now)
    ]
    return find_proxy(value, *items) is not None


def _is_pythons(holder: AnyValue, name: AnyValue) -> bool:
    """Whether it is an attribute of a class that is not the user's."""
    return isinstance(holder, type) and name[:2] == "__"


def _refill(values: AnyValue, before: AnyValue) -> None:
    """Let a list, set or deque have the items that it had."""
    values.clear()
    add = values.update if isinstance(before, set) else values.extend
    add(before)


def warn_of_changes(found: Iterable[StateChange], advice: str) -> None:
    """Warn of what is not what it was, if there is such."""
    paths = dict.fromkeys(change.path for change in found)
    if paths:
        frames.warn(
            f"the code put another value in the place of {', '.join(paths)} "
            "while it was traced, and the graph does not do that when it "
            f"runs. {advice}"
        )
