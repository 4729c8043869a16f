"""Extra: nested values taken apart into tensors and what they were in.

A graph has a placeholder for each tensor.  What a program takes and gives is
nested: tuples, dicts, a dataclass, an object with a cache.  `Apart.flatten`
gives the tensors, and a description of the rest, which can be compared and
saved:

    {"x": t, "n": 3}    →    [t],  Container(dict, (Leaf(0), Constant(3)))

Objects that torch's pytree does not know are taken by their attributes.

Containers are numbered in the order in which they are met, so that a result
can say that it has the cache of the inputs, and not one like it. Tuples are
not, since two equal ones are as good as each other. Two constants are equal if
they are of one type: `True` is not taken for 1.

An object is taken apart by its attributes only if its class makes objects in
the usual way, since others cannot be put together again.
"""

from __future__ import annotations

import enum
import operator
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Final, TypeAlias

import torch
from torch import nn

from ...node import Node
from ...torch_internals import pytree
from ...torch_internals.symbolic_sizes import SYMBOLIC
from ...usedef.values import STANDING_FOR_VALUES, Value
from .guards import GuardError


@dataclass(frozen=True)
class Leaf:
    """A tensor, or a number that is computed of sizes.

    Attributes:
        index: which of the leaves it is.
    """

    index: int


@dataclass(frozen=True, eq=False)
class Constant:
    """Anything else that is not looked into; equal ones are the same to us."""

    value: Value

    def __eq__(self, other: object) -> bool:
        """Whether it is the same object, or an equal one of the same type."""
        if not isinstance(other, Constant):
            return NotImplemented
        one, two = self.value, other.value
        if one is two:
            return True
        if type(one) is not type(two) or isinstance(one, torch.Tensor):
            return False
        return _is_true(one == two)

    def __hash__(self) -> int:
        """The same for equal ones."""
        return hash(type(self.value))


@dataclass(frozen=True)
class Container:
    """A container that torch's pytree knows, or an object by its attributes.

    Attributes:
        number: which of the containers it is; -1 for a tuple, of which nobody
            can tell whether it is the same.
        spec: what pytree says of it; for an object, of a dict of attributes.
        parts: what is in it.
        kind: the class of an object; None for what pytree knows.
    """

    number: int
    spec: pytree.TreeSpec
    parts: tuple[Part, ...]
    kind: type[Value] | None = None

    def __reduce__(self) -> tuple[Value, ...]:
        """Pickle an example of the structure, not torch's description."""
        example = pytree.tree_unflatten([0] * len(self.parts), self.spec)
        return Container.of, (self.number, example, self.parts, self.kind)

    @classmethod
    def of(
        cls,
        number: int,
        example: Value,
        parts: tuple[Part, ...],
        kind: type[Value] | None,
    ) -> Container:
        """The container of an example, in which nothing counts but the form."""
        return cls(number, _one_level(example)[1], parts, kind)


@dataclass(frozen=True)
class BackReference:
    """A container that was met before.

    Attributes:
        number: which of the containers it is.
    """

    number: int


Part: TypeAlias = Leaf | Constant | Container | BackReference


class Apart:
    """Values that were taken apart.

    Attributes:
        leaves: the tensors, and the numbers computed of sizes.
        paths: how each of them is written, `cache.layers[0].keys`.
        containers: those that were met, in order.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self.leaves: list[Value] = []
        self.paths: list[str] = []
        self.containers: list[Value] = []
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
        if isinstance(value, _PLAIN):
            return Constant(value)
        if id(value) in self._numbers:
            return BackReference(self._numbers[id(value)])
        content, kind = _held(value)
        if content is None:
            return Constant(value)
        number = self._meet(value)
        items, spec = _one_level(content)
        keys = _keys(content, len(items))
        parts = tuple(
            self.flatten(item, path and _written(path, key, kind))
            for key, item in zip(keys, items, strict=True)
        )
        return Container(number, spec, parts, kind)

    def _meet(self, value: Value) -> int:
        """Give a container its number."""
        if isinstance(value, tuple):
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
        if part.kind is torch.Size:
            return torch.Size(self._held(part, leaves))
        if part.kind is not None:
            new = object.__new__(part.kind)
            self._meet(new)
            _set_attributes(new, self._held(part, leaves))
            return new
        place = None if part.number < 0 else self._meet(part)
        new = self._held(part, leaves)
        if place is not None:
            self.containers[place] = new
            self._numbers[id(new)] = place
        return new

    def _held(self, part: Container, leaves: list[Value]) -> Value:
        """What pytree makes of the parts of a container."""
        items = [self.unflatten(inner, leaves) for inner in part.parts]
        return pytree.tree_unflatten(items, part.spec)

    def snapshot(self) -> list[Container]:
        """What each container that was met holds now, as it is."""
        containers = []
        for number, value in enumerate(self.containers):
            content, kind = _held(value)
            items, spec = _one_level(content)
            containers.append(Container(number, spec, tuple(items), kind))
        return containers

    def changed(self, before: list[Container]) -> list[Container]:
        """Which containers have not the items any more that they had.

        Args:
            before: what `snapshot` gave.

        Returns:
            What they hold now, for `refill`.
        """
        return [
            replace(new, parts=tuple(map(self.flatten, new.parts)))
            for old, new in zip(before, self.snapshot(), strict=False)
            if old.spec != new.spec
            or not all(map(operator.is_, old.parts, new.parts))
        ]

    def refill(self, part: Container, leaves: list[Value]) -> None:
        """Let a container that was met hold what a part says now."""
        new = self._held(part, leaves)
        value = self.containers[part.number]
        if part.kind is not None:
            _set_attributes(value, new)
        elif isinstance(value, list):
            value[:] = new
        elif isinstance(value, dict):
            value.clear()
            value.update(new)
        else:
            _set_attributes(value, dict(vars(new)))


def is_tensor(value: object) -> bool:
    """Whether it is a tensor."""
    return isinstance(value, torch.Tensor)


# -- one level -----------------------------------------------------------------


_LEAVES: Final = (torch.Tensor, Node, *STANDING_FOR_VALUES, *SYMBOLIC)
"""Types of tensors, and of what stands for them."""

_PLAIN: Final = (
    *(int, float, complex, str, bytes, type(None), enum.Enum, type),
    *(torch.dtype, torch.device, torch.layout, torch.memory_format),
    *(types.FunctionType, types.BuiltinFunctionType, types.MethodType),
    *(types.ModuleType, nn.Module),
)
"""Types that are not looked into."""


def attributes_of(value: Value) -> dict[str, Value] | None:
    """The attributes of an object; None if it keeps what it has elsewhere."""
    if isinstance(value, _PLAIN):
        return None
    kind: Value = type(value)
    if kind.__new__ is not object.__new__:
        return None  # it may be made of more than attributes
    if is_dataclass(value) and not hasattr(value, "__dict__"):
        return {f.name: getattr(value, f.name) for f in fields(value)}
    return getattr(value, "__dict__", None)


def _set_attributes(value: Value, attributes: dict[str, Value]) -> None:
    """Let an object have these attributes and no others."""
    own = getattr(value, "__dict__", None)
    if own is None:
        for name, item in attributes.items():
            object.__setattr__(value, name, item)
    else:
        own.clear()
        own.update(attributes)


def _held(value: Value) -> tuple[Value, type[Value] | None]:
    """What pytree can take apart of a value, and its class if that is new.

    For a container that it knows, this is the value itself; for an object, its
    attributes, or None.
    """
    if isinstance(value, torch.Size):
        return tuple(value), torch.Size
    if not pytree.tree_is_leaf(value):
        return value, None
    return attributes_of(value), type(value)


def _one_level(value: Value) -> tuple[list[Value], pytree.TreeSpec]:
    """What is directly in a container, and what pytree says of that."""
    return pytree.tree_flatten(value, partial(operator.is_not, value))


def _keys(value: Value, count: int) -> Iterator[Value]:
    """What the items of a container are found by."""
    keys = list(value) if isinstance(value, dict) else []
    if len(keys) == count:
        return iter(keys)
    return iter(getattr(value, "_fields", range(count)))


def keys_of(part: Container) -> Iterator[Value]:
    """What the parts of a container are found by."""
    count = len(part.parts)
    return _keys(pytree.tree_unflatten([0] * count, part.spec), count)


def _written(path: str, key: Value, kind: Value) -> str:
    """How an item of a container, or an attribute of an object, is written."""
    is_item = kind in (None, torch.Size)
    return f"{path}[{key!r}]" if is_item else f"{path}.{key}"


def _is_true(answer: Value) -> bool:
    """Whether an object says that it is equal, which may be no bool."""
    try:
        return bool(answer)
    except Exception:  # an array, say
        return False


# -- differences ---------------------------------------------------------------


def difference(one: Part, two: Part, path: str) -> tuple[str, Value, Value]:
    """Where two parts differ first, and what each has there.

    Args:
        one: a part.
        two: one that is not equal to it.
        path: how both are written.
    """
    if isinstance(one, Container) and isinstance(two, Container):
        same = one.spec == two.spec and one.kind is two.kind
        if same and one.number == two.number:
            parts = zip(keys_of(one), one.parts, two.parts, strict=True)
            for key, a, b in parts:
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
    kind = part.kind or part.spec.type
    return f"a {kind.__name__} of {len(part.parts)}"


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
    kind = part.kind or part.spec.type
    inside = zip(keys_of(part), part.parts, strict=True)
    texts = (f"{key}: {_text_of(inner)}" for key, inner in inside)
    return f"{kind.__qualname__}({', '.join(texts)})"


def of_structure(value: Value, structure: str) -> Value:
    """Check what a leaf has returned, which the program has looked into.

    Returns:
        The value.

    Raises:
        GuardError: it is nested otherwise than when it was traced.
    """
    found = structure_of(value)
    if found != structure:
        raise GuardError(
            f"the trace relied on a result of a leaf that is {structure}, and "
            f"it is {found}. Trace again with an example like this one"
        )
    return value
