"""Extra: nested values taken apart into tensors and what they were in.

A graph has a placeholder for each tensor.  What a program takes and gives is
nested: tuples, dicts, a dataclass, an object with a cache.  `Apart.flatten`
gives the tensors, and a description of the rest, which can be compared and
saved:

    {"x": t, "n": 3}
    →   [t],  Container(0, dict, ("x", "n"), (TensorLeaf(0), Constant(3)))

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
could tell whether it is still what it was. It is never equal to another one,
and listed as `refused`.

A value that is taken apart has items, and a `form`, which is what else has to
be the same: the keys of a dict, the names of the attributes. A class that is
written in C may keep more than that, and so may one with a `__new__`.

Containers are numbered in the order in which they are met, so that a result
can say that it has the cache of the inputs, and not one like it. Tuples are
not, since two equal ones are as good as each other.
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Final, NamedTuple, TypeAlias

import torch
from torch import nn

from ...node import Node
from ...proxy import TraceError
from ...torch_private.fake_tensors import is_fake
from ...torch_private.modules import SUPPORTED_NODES
from ...torch_private.overloads import OpOverload, OpOverloadPacket
from ...torch_private.symbolic_sizes import SYMBOLIC
from ...use_def.values import PROXY_TYPES, AnyValue
from ..watching.changes import is_of_python, slots_of
from . import errors
from .guards import GuardError, refuse

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


def is_constant(value: AnyValue) -> bool:
    """Whether nobody can change a value, or it is compared by identity."""
    cls = type(value)
    if cls in _VALUES:
        return True
    if cls in (tuple, frozenset):
        return all(map(is_constant, value))
    if cls in (list, dict):  # torch.compile would warn of what follows
        return False
    if isinstance(value, _of_numpy()):
        return value.dtype.kind not in "OV"
    return isinstance(value, (enum.Enum, PurePath)) or by_identity(value)


def by_identity(value: AnyValue) -> bool:
    """Whether a value is compared by identity."""
    if isinstance(value, _METHODS):  # and not that of a list, say
        return value.__self__ is None or by_identity(value.__self__)
    return isinstance(value, _BY_IDENTITY) or type(value) is object


def is_same(one: AnyValue, two: AnyValue) -> bool:
    """Whether Python can tell no difference between constants, or forms."""
    cls: AnyValue = type(one)
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
    return _is_equal(one, two)


def _is_equal(one: AnyValue, two: AnyValue) -> bool:
    """Whether two values are equal; not if nobody can tell."""
    try:
        if one == two:  # a branch fixes what torch.compile lets vary
            return True
    except Exception:  # an array, say
        return False
    return False


def _of_numpy() -> AnyValue:
    """The class of numpy's numbers; none if nobody has imported numpy."""
    return getattr(sys.modules.get("numpy"), "generic", ())


# -- what is taken apart -------------------------------------------------------


def opened(value: AnyValue) -> tuple[AnyValue, Sequence[AnyValue]] | None:
    """The form and the items of a value; None if it is not taken apart."""
    cls: AnyValue = type(value)
    if isinstance(value, dict | set) and not all(map(is_constant, value)):
        return None  # its keys may change
    if (node := _node(cls)) is None:
        return _attributes(value) if _is_object(cls) else None
    has_items = isinstance(value, (tuple, functools.partial))
    if has_items and cls is not tuple and _attributes(value)[0]:
        return None  # and more than those
    items, form = node.flatten_fn(value)
    return form, [*items]


def keys_of(cls: AnyValue, form: AnyValue, count: int) -> Sequence[AnyValue]:
    """What the items of a value are found by."""
    if issubclass(cls, dict) or _is_object(cls):
        keys = form[1] if cls is defaultdict else form
        if isinstance(keys, list | tuple) and len(keys) == count:
            return keys
    return getattr(cls, "_fields", range(count))


def is_taken_apart(cls: AnyValue) -> bool:
    """Whether values of a class are."""
    return isinstance(cls, type) and (_is_object(cls) or _node(cls) is not None)


def empty(cls: AnyValue) -> AnyValue:
    """A new object without attributes; None for a class that pytree knows."""
    return None if _node(cls) else cls.__new__(cls)


def made(cls: AnyValue, form: AnyValue, items: Sequence[AnyValue]) -> AnyValue:
    """What pytree makes of a form and items."""
    return _node(cls).unflatten_fn([*items], form)


def fill(value: AnyValue, form: AnyValue, items: Sequence[AnyValue]) -> None:
    """Put these items into a container or object, in place of what it has.

    `form` says where each belongs: for an object, the names of attributes.
    """
    cls: AnyValue = type(value)
    if _node(cls) is not None:
        new = made(cls, form, items)
        if isinstance(value, dict | list | set | deque):
            add: AnyValue = getattr(
                value, "update", getattr(value, "extend", 0)
            )
            value.clear()
            add(new)
        if cls is defaultdict:
            untyped: AnyValue = value
            untyped.default_factory = new.default_factory
        form, items = _attributes(new)
    own, slots = _dict_of(value), slots_of(cls)
    own.clear()
    for member in slots.values():
        with contextlib.suppress(AttributeError):  # it has none now
            member.__delete__(value)
    for name, item in zip(form, items, strict=True):
        if name in slots:
            slots[name].__set__(value, item)
        else:
            own[name] = item


def attributes_of(value: AnyValue) -> dict[str, AnyValue]:
    """The attributes of an object that is taken apart by them; else none."""
    is_one = not is_constant(value) and not _node(type(value))
    found = opened(value) if is_one else None
    return dict(zip(*found, strict=True)) if found else {}


def _node(cls: AnyValue) -> AnyValue:
    """What pytree knows of a class; None if it does not know it."""
    nodes = SUPPORTED_NODES
    is_named = issubclass(cls, tuple) and hasattr(cls, "_fields")
    return (
        _OURS.get(cls) or nodes.get(cls) or nodes.get(is_named and namedtuple)
    )


class _Node(NamedTuple):
    """What pytree would know of a class."""

    flatten_fn: Callable[[AnyValue], tuple[Sequence[AnyValue], AnyValue]]
    unflatten_fn: Callable[[Sequence[AnyValue], AnyValue], AnyValue]


def _by_names(make: Callable[..., AnyValue], *names: str) -> _Node:
    """The node for a class whose objects are made of some attributes."""
    get: AnyValue = operator.attrgetter(*names)
    return _Node(lambda v: (get(v), None), lambda items, _: make(*items))


def _partial(
    function: AnyValue, args: AnyValue, keywords: AnyValue
) -> AnyValue:
    """A partial that has these very keywords, and not a copy."""
    new: AnyValue = functools.partial(function)
    new.__setstate__((function, args, keywords, None))
    return new


_OURS: Final[dict[AnyValue, _Node]] = {
    torch.Size: _Node(lambda v: (v, None), lambda items, _: torch.Size(items)),
    set: _Node(lambda value: ((), [*value]), lambda _, items: {*items}),
    slice: _by_names(slice, "start", "stop", "step"),
    types.MethodType: _by_names(types.MethodType, "__func__", "__self__"),
    functools.partial: _by_names(_partial, "func", "args", "keywords"),
}
"""What torch's pytree lacks, or makes a plain tuple of."""


@functools.lru_cache(maxsize=1024)
def _is_object(cls: AnyValue) -> bool:
    """Whether objects of a class have attributes, and nothing else."""
    base: AnyValue = cls
    while base is typing.Generic or is_of_python(base):
        base = base.__base__
    return base in _BASES and cls.__new__ is base.__new__


def _dict_of(value: AnyValue) -> dict[str, AnyValue]:
    """The attributes that an object has in a dict."""
    cls: AnyValue = type(value)
    return value.__dict__ if cls.__dictoffset__ else {}


def _attributes(value: AnyValue) -> tuple[AnyValue, Sequence[AnyValue]]:
    """The names and values of an object's attributes."""
    found = {**_dict_of(value)}
    cls: AnyValue = type(value)
    for name, member in slots_of(cls).items():
        with contextlib.suppress(AttributeError):  # it has none now
            found[name] = member.__get__(value)
    return tuple(found), [*found.values()]


_BASES: Final = (object, types.SimpleNamespace)
"""The classes of C whose objects have attributes, and nothing else."""


# -- parts ---------------------------------------------------------------------


@dataclass(frozen=True)
class TensorLeaf:
    """A tensor, or a number that is computed of sizes, or may vary.

    Attributes:
        index: which of the leaves it is.
    """

    index: int


@dataclass(frozen=True, eq=False)
class Constant:
    """A value that is kept whole, such as a number, a function or a module.

    Two are equal if Python can tell no difference between their values.
    """

    value: AnyValue

    def __eq__(self, other: object) -> bool:
        """Whether Python can tell no difference."""
        return isinstance(other, Constant) and is_same(self.value, other.value)

    def __hash__(self) -> int:
        """The same for equal ones."""
        return hash(type(self.value))

    def __deepcopy__(self, memo: AnyValue) -> Constant:
        """The constant itself: a copy of a function or module is another."""
        return self


class LeftOut(Constant):
    """The default of a parameter that a call leaves out, whatever is in it."""


class Refused(Constant):
    """What is not taken apart: nobody knows whether two of them are equal."""

    def __eq__(self, other: object) -> bool:
        """Never."""
        return False

    def __hash__(self) -> int:
        """As of any constant."""
        return super().__hash__()


@dataclass(frozen=True)
class Container:
    """A value that was taken apart.

    Attributes:
        number: which of the containers it is; -1 for a tuple and the like, of
            which nobody can tell whether it is the same.
        kind: its class.
        form: what else has to be the same, such as the keys of a dict.
        parts: what is in it.
    """

    number: int
    kind: AnyValue
    form: Constant
    parts: tuple[Part, ...]

    @property
    def like(self) -> tuple[AnyValue, ...]:
        """What is equal for containers that differ in their parts alone."""
        return self.number, self.kind, self.form, len(self.parts)

    @property
    def keys(self) -> Sequence[AnyValue]:
        """What the parts are found by."""
        return keys_of(self.kind, self.form.value, len(self.parts))


@dataclass(frozen=True)
class BackReference:
    """A container that was met before.

    Attributes:
        number: which of the containers it is.
    """

    number: int


Part: TypeAlias = TensorLeaf | Constant | Container | BackReference


_LEAVES: Final = (torch.Tensor, Node, *PROXY_TYPES, *SYMBOLIC)
"""Types of tensors, and of what stands for them."""


class Apart:
    """Values that were taken apart.

    Attributes:
        leaves: the tensors, and the numbers computed of sizes.
        paths: how each of them is written, `cache.layers[0].keys`.
        containers: those that were met, in order.
        same: path → what is compared by identity.
        refused: path → what is not taken apart.
        numbers: path → the type of a number that is a leaf there.
    """

    def __init__(self, numbers: Mapping[str, type] | None = None) -> None:
        """Begin with nothing."""
        self.numbers: Mapping[str, type] = numbers or {}
        self.leaves: list[AnyValue] = []
        self.paths: list[str] = []
        self.containers: list[AnyValue] = []
        self.same: dict[str, AnyValue] = {}
        self.refused: dict[str, AnyValue] = {}
        self._numbers: dict[int, int] = {}

    def flatten(self, value: AnyValue, path: str = "") -> Part:
        """Take a value apart.

        Args:
            value: may be nested.
            path: how it is written.

        Cost: O(size of `value`).
        """
        cls = type(value)
        if isinstance(value, _LEAVES) or self.numbers.get(path) is cls:
            self.leaves.append(value)
            self.paths.append(path)
            return TensorLeaf(len(self.leaves) - 1)
        if cls is not tuple and is_constant(value):
            if by_identity(value):
                self.same[path] = value
            return Constant(value)
        if id(value) in self._numbers:
            return BackReference(self._numbers[id(value)])
        found = opened(value)
        if found is None:
            self.refused[path] = value
            return Refused(value)
        form, items = found
        number = self._meet(value)
        keys = keys_of(cls, form, len(items))
        parts = tuple(
            self.flatten(item, path and written(path, key, cls))
            for key, item in zip(keys, items, strict=True)
        )
        return Container(number, cls, Constant(form), parts)

    def _meet(self, value: AnyValue) -> int:
        """Give a container its number."""
        if isinstance(value, tuple | slice | types.MethodType):
            return -1
        self._numbers[id(value)] = number = len(self.containers)
        self.containers.append(value)
        return number

    def unflatten(self, part: Part, leaves: list[AnyValue]) -> AnyValue:
        """Put together what a part describes.

        Containers that this has met already are these very objects.

        Args:
            part: what `flatten` gave, of this or after this.
            leaves: for the leaves.
        """
        if isinstance(part, TensorLeaf):
            return leaves[part.index]
        if isinstance(part, Constant):
            return part.value
        if isinstance(part, BackReference):
            return self.containers[part.number]
        new = empty(part.kind)
        if new is not None:
            self._meet(new)
            fill(new, part.form.value, self._items(part, leaves))
            return new
        place = None if part.number < 0 else self._meet(part)
        new = made(part.kind, part.form.value, self._items(part, leaves))
        if place is not None:
            self.containers[place] = new
            self._numbers[id(new)] = place
        return new

    def _items(self, part: Container, leaves: list[AnyValue]) -> list[AnyValue]:
        """What is in a container."""
        return [self.unflatten(inner, leaves) for inner in part.parts]

    def snapshot(self) -> list[Container]:
        """What each container that was met holds now, as it is."""
        found = []
        for number, value in enumerate(self.containers):
            form, items = opened(value) or (None, (value,))
            now = Constant(form), tuple(items)
            found.append(Container(number, type(value), *now))
        return found

    def changed(self, before: list[Container]) -> list[Container]:
        """Which containers have not the items any more that they had.

        Args:
            before: what `snapshot` gave.

        Returns:
            What they hold now, for `refill`.
        """
        return [
            self._again(new)
            for old, new in zip(before, self.snapshot(), strict=False)
            if old.like != new.like
            or not all(map(operator.is_, old.parts, new.parts))
        ]

    def _again(self, now: Container) -> Container:
        """What a container holds now, taken apart."""
        path = f"what is in a {now.kind.__name__} of the inputs"
        if opened(self.containers[now.number]) is None:
            self.refused[path] = self.containers[now.number]
        parts = tuple(self.flatten(item, path) for item in now.parts)
        return replace(now, parts=parts)

    def refill(self, part: Container, leaves: list[AnyValue]) -> None:
        """Let a container that was met hold what a part says now."""
        value = self.containers[part.number]
        fill(value, part.form.value, self._items(part, leaves))


def is_tensor(value: object) -> bool:
    """Whether it is a tensor."""
    return isinstance(value, torch.Tensor)


def written(path: str, key: AnyValue, cls: AnyValue) -> str:
    """How an item of a container, or an attribute of an object, is written."""
    is_item = not isinstance(key, str) or issubclass(cls, dict)
    return f"{path}[{key!r}]" if is_item else f"{path}.{key}"


def walk(part: Part) -> Iterator[Part]:
    """A part, and all that is in it."""
    yield part
    for inner in part.parts if isinstance(part, Container) else ():
        yield from walk(inner)


def is_literal(part: Part) -> bool:
    """Whether a part can be an argument of a node as it is.

    It can if its containers are tuples, lists, dicts and slices, and no object
    is in it twice.
    """
    return all(
        each.kind in (tuple, list, dict, slice) or hasattr(each.kind, "_fields")
        if isinstance(each, Container)
        else not isinstance(each, BackReference)
        for each in walk(part)
    )


# -- differences ---------------------------------------------------------------


def difference(
    one: Part, two: Part, path: str
) -> tuple[str, AnyValue, AnyValue]:
    """Where two parts differ first, and what each has there.

    Args:
        one: a part.
        two: one that is not equal to it.
        path: how both are written.
    """
    if isinstance(one, Container) and isinstance(two, Container):
        if one.like != two.like:
            return path, one, two
        for key, a, b in zip(one.keys, one.parts, two.parts, strict=True):
            if a != b:
                where = path and written(path, key, one.kind)
                return difference(a, b, where)
    return path, one, two


def in_words(part: Part) -> str:
    """What a part is, for a message."""
    if isinstance(part, TensorLeaf):
        return "a tensor"
    if isinstance(part, Constant):
        return repr(part.value)
    if isinstance(part, BackReference):
        return "an object that is given twice"
    return f"a {part.kind.__name__} of {len(part.parts)}"


# -- what is refused -----------------------------------------------------------


def check_inputs(apart: Apart) -> None:
    """Raise TraceError unless inputs were taken apart wholly."""
    for path, value in apart.refused.items():
        raise TraceError(errors.refused(f"the input {path}", value))


def check_results(apart: Apart, given: Iterable[AnyValue] = ()) -> None:
    """Raise TraceError unless a graph can make results anew in each call.

    Args:
        apart: the results.
        given: what is compared by identity among the inputs.
    """
    known = {*map(id, given)}
    same = (pair for pair in apart.same.items() if id(pair[1]) not in known)
    held = (pair for pair in same if not _is_lasting(pair[1]))
    for path, value in (*apart.refused.items(), *held):
        raise TraceError(errors.refused(path, value))


def _is_lasting(value: AnyValue) -> bool:
    """Whether it was there before the program, and holds nothing of it."""
    if isinstance(value, nn.Module):
        return not any(map(is_fake, (*value.parameters(), *value.buffers())))
    if isinstance(value, types.FunctionType):
        return "<locals>" not in value.__code__.co_qualname
    return True


# -- calls with objects --------------------------------------------------------


class OnObjects:
    """A function that is called with objects, and given their tensors.

    Attributes:
        part: what it is called with.
        parts: what it has returned in the first call, and what it has changed.
    """

    def __init__(self, function: Callable[..., AnyValue], part: Part) -> None:
        """Make it of what a call is given."""
        self._function = function
        self.part: Part = part
        self.parts: tuple[AnyValue, ...] = ()
        self.__name__: str = getattr(function, "__name__", "call")

    def __call__(self, *leaves: AnyValue) -> list[AnyValue]:
        """The tensors in the result, then those that objects have anew.

        Raises:
            GuardError: there are others than in the first call.
        """
        apart = Apart()
        args, kwargs = apart.unflatten(self.part, [*leaves])
        before = apart.snapshot()
        apart.leaves += leaves
        result = self._function(*args, **kwargs)
        parts = apart.flatten(result), *apart.changed(before)
        self.parts = self.parts or parts
        check_results(apart)
        numbers = [x for x in apart.leaves[len(leaves) :] if not is_tensor(x)]
        for number in numbers:  # which would be no leaf in the next call
            raise TraceError(errors.refused(self.__name__, number))
        if parts != self.parts:
            raise GuardError(
                f"{self.__name__} has done something else with its objects "
                "than when it was traced. Trace again with such inputs"
            )
        return apart.leaves[len(leaves) :]


# -- results of leaves ---------------------------------------------------------


def structure_of(value: AnyValue) -> str:
    """How a value is nested, as a text: `tuple(Tensor, None)`."""
    return _text_of(Apart().flatten(value))


def _text_of(part: Part) -> str:
    """How a part is nested."""
    if isinstance(part, TensorLeaf):
        return "Tensor"
    if isinstance(part, BackReference):
        return f"the same as {part.number}"
    if isinstance(part, Constant):
        is_number = isinstance(part.value, int | float | str | None)
        return repr(part.value) if is_number else type(part.value).__qualname__
    pairs = zip(part.keys, part.parts, strict=True)
    texts = (f"{key}: {_text_of(inner)}" for key, inner in pairs)
    return f"{part.kind.__qualname__}({', '.join(texts)})"


def of_structure(
    value: AnyValue, structure: str, opened: Sequence[AnyValue] = ()
) -> AnyValue:
    """Check what a leaf has returned, which the program has looked into.

    Returns:
        The value.

    Raises:
        GuardError: it is nested otherwise than when it was traced.
    """
    found = structure_of(value)
    if found != structure:
        refuse(
            f"the trace relied on a result of a leaf that is {structure}, and "
            f"it is {found}. Trace again with an example like this one",
            opened,
        )
    return value
