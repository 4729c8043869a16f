"""Extra: nested values taken apart into tensors and what they were in.

A graph has a placeholder for each tensor.  What a program takes and gives is
nested: tuples, dicts, a dataclass, an object with a cache.  `Apart.flatten`
gives the tensors, and a description of the rest, which can be compared and
saved:

    {"x": t, "n": 3}
    →   [t],  Container(0, dict, ("x", "n"), (Leaf(0), Constant(3)))

Which kinds of values are taken apart, and how, is in `kinds`. A value of none
of these is never equal to another one, and listed as `refused`.

Containers are numbered in the order in which they are met, so that a result
can say that it has the cache of the inputs, and not one like it. Tuples are
not, since two equal ones are as good as each other.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from types import FunctionType, MethodType
from typing import Final, TypeAlias

import torch
from torch import nn

from ...node import Node
from ...proxy import TraceError
from ...torch_private.fake_tensors import is_fake
from ...torch_private.symbolic_sizes import SYMBOLIC
from ...use_def.values import STANDING_FOR_VALUES, Value
from . import errors
from .guards import GuardError, refuse
from .kinds import (
    by_identity,
    empty,
    fill,
    is_constant,
    is_same,
    keys_of,
    made,
    opened,
)


@dataclass(frozen=True)
class Leaf:
    """A tensor, or a number that is computed of sizes.

    Attributes:
        index: which of the leaves it is.
    """

    index: int


@dataclass(frozen=True, eq=False)
class Constant:
    """What is not looked into; those that nobody can tell apart are equal."""

    value: Value

    def __eq__(self, other: object) -> bool:
        """Whether Python can tell no difference."""
        return isinstance(other, Constant) and is_same(self.value, other.value)

    def __hash__(self) -> int:
        """The same for equal ones."""
        return hash(type(self.value))

    def __deepcopy__(self, memo: Value) -> Constant:
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
    kind: Value
    form: Constant
    parts: tuple[Part, ...]

    @property
    def like(self) -> tuple[Value, ...]:
        """What is equal for containers that differ in their parts alone."""
        return self.number, self.kind, self.form, len(self.parts)

    @property
    def keys(self) -> Sequence[Value]:
        """What the parts are found by."""
        return keys_of(self.kind, self.form.value, len(self.parts))


@dataclass(frozen=True)
class BackReference:
    """A container that was met before.

    Attributes:
        number: which of the containers it is.
    """

    number: int


Part: TypeAlias = Leaf | Constant | Container | BackReference


_LEAVES: Final = (torch.Tensor, Node, *STANDING_FOR_VALUES, *SYMBOLIC)
"""Types of tensors, and of what stands for them."""


class Apart:
    """Values that were taken apart.

    Attributes:
        leaves: the tensors, and the numbers computed of sizes.
        paths: how each of them is written, `cache.layers[0].keys`.
        containers: those that were met, in order.
        same: path → what is compared by identity.
        refused: path → what is not taken apart.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self.leaves: list[Value] = []
        self.paths: list[str] = []
        self.containers: list[Value] = []
        self.same: dict[str, Value] = {}
        self.refused: dict[str, Value] = {}
        self._numbers: dict[int, int] = {}

    def flatten(self, value: Value, path: str = "") -> Part:
        """Take a value apart.

        Args:
            value: may be nested.
            path: how it is written.

        Cost: O(size of `value`).
        """
        if isinstance(value, _LEAVES):
            self.leaves.append(value)
            self.paths.append(path)
            return Leaf(len(self.leaves) - 1)
        cls = type(value)
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
            self.flatten(item, path and _written(path, key, cls))
            for key, item in zip(keys, items, strict=True)
        )
        return Container(number, cls, Constant(form), parts)

    def _meet(self, value: Value) -> int:
        """Give a container its number."""
        if isinstance(value, tuple | slice | MethodType):
            return -1
        self._numbers[id(value)] = number = len(self.containers)
        self.containers.append(value)
        return number

    def unflatten(self, part: Part, leaves: list[Value]) -> Value:
        """Put together what a part describes.

        Containers that this has met already are these very objects.

        Args:
            part: what `flatten` gave, of this or after this.
            leaves: for the leaves.
        """
        if isinstance(part, Leaf):
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

    def _items(self, part: Container, leaves: list[Value]) -> list[Value]:
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

    def refill(self, part: Container, leaves: list[Value]) -> None:
        """Let a container that was met hold what a part says now."""
        value = self.containers[part.number]
        fill(value, part.form.value, self._items(part, leaves))


def is_tensor(value: object) -> bool:
    """Whether it is a tensor."""
    return isinstance(value, torch.Tensor)


def _written(path: str, key: Value, cls: Value) -> str:
    """How an item of a container, or an attribute of an object, is written."""
    is_item = not isinstance(key, str) or issubclass(cls, dict)
    return f"{path}[{key!r}]" if is_item else f"{path}.{key}"


def is_literal(part: Part) -> bool:
    """Whether a node, which knows tuples, lists and dicts, can hold a part."""
    if isinstance(part, Container):
        named = hasattr(part.kind, "_fields")
        is_known = named or part.kind in (tuple, list, dict, slice)
        return is_known and all(map(is_literal, part.parts))
    return not isinstance(part, BackReference)


# -- differences ---------------------------------------------------------------


def difference(one: Part, two: Part, path: str) -> tuple[str, Value, Value]:
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
                where = path and _written(path, key, one.kind)
                return difference(a, b, where)
    return path, one, two


def in_words(part: Part) -> str:
    """What a part is, for a message."""
    if isinstance(part, Leaf):
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


def check_results(apart: Apart, given: Iterable[Value] = ()) -> None:
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


def _is_lasting(value: Value) -> bool:
    """Whether it was there before the program, and holds nothing of it."""
    if isinstance(value, nn.Module):
        return not any(map(is_fake, (*value.parameters(), *value.buffers())))
    if isinstance(value, FunctionType):
        return "<locals>" not in value.__code__.co_qualname
    return True


# -- calls with objects --------------------------------------------------------


class OnObjects:
    """A function that is called with objects, and given their tensors.

    Attributes:
        part: what it is called with.
        parts: what it has returned in the first call, and what it has changed.
    """

    def __init__(self, function: Callable[..., Value], part: Part) -> None:
        """Make it of what a call is given."""
        self._function = function
        self.part: Part = part
        self.parts: tuple[Value, ...] = ()
        self.__name__: str = getattr(function, "__name__", "call")

    def __call__(self, *leaves: Value) -> list[Value]:
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


def structure_of(value: Value) -> str:
    """How a value is nested, as a text: `tuple(Tensor, None)`."""
    return _text_of(Apart().flatten(value))


def _text_of(part: Part) -> str:
    """How a part is nested."""
    if isinstance(part, Leaf):
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
    value: Value, structure: str, opened: Sequence[Value] = ()
) -> Value:
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
