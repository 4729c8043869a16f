"""A stand-in for torch.utils._pytree: nested values as trees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from .._tensor import AnyValue

Flatten = Callable[[AnyValue], tuple[list[AnyValue], AnyValue]]
Unflatten = Callable[[list[AnyValue], AnyValue], AnyValue]
NODES: Final[dict[type, tuple[Flatten, Unflatten]]] = {
    tuple: (lambda one: (list(one), None), lambda leaves, _: tuple(leaves)),
    list: (lambda one: (list(one), None), lambda leaves, _: leaves),
    dict: (
        lambda one: (list(one.values()), list(one)),
        lambda leaves, keys: dict(zip(keys, leaves, strict=True)),
    ),
}
"""Class -> how to take an instance apart, and how to put it together."""


@dataclass(frozen=True)
class MappingKey:
    """A step of a path, into a dict."""

    key: AnyValue


@dataclass(frozen=True)
class SequenceKey:
    """A step of a path, into a list."""

    idx: int


@dataclass
class TreeSpec:
    """A tree without its leaves; `type` is None for a leaf."""

    type: AnyValue = None
    context: AnyValue = None
    children_specs: list[TreeSpec] = field(default_factory=list)

    def is_leaf(self) -> bool:
        """Whether it is a leaf."""
        return self.type is None

    @property
    def num_leaves(self) -> int:
        """How many leaves the tree has."""
        inner = sum(one.num_leaves for one in self.children_specs)
        return 1 if self.is_leaf() else inner


def register_pytree_node(
    cls: type, flatten: Flatten, unflatten: Unflatten, **more: AnyValue
) -> None:
    """Make a class one of the containers."""
    NODES[cls] = flatten, unflatten


def tree_is_leaf(tree: AnyValue) -> bool:
    """Whether a value is not a container."""
    return type(tree) not in NODES


def tree_flatten(tree: AnyValue) -> tuple[list[AnyValue], TreeSpec]:
    """The leaves of a tree, and the tree without them."""
    if tree_is_leaf(tree):
        return [tree], TreeSpec()
    children, context = NODES[type(tree)][0](tree)
    pairs = [tree_flatten(child) for child in children]
    leaves = [leaf for found, _ in pairs for leaf in found]
    return leaves, TreeSpec(type(tree), context, [spec for _, spec in pairs])


def tree_unflatten(leaves: Iterable[AnyValue], treespec: TreeSpec) -> AnyValue:
    """A tree with other leaves."""
    return _filled(iter(leaves), treespec)


def _filled(leaves: Iterator[AnyValue], spec: TreeSpec) -> AnyValue:
    if spec.is_leaf():
        return next(leaves)
    children = [_filled(leaves, child) for child in spec.children_specs]
    return NODES[spec.type][1](children, spec.context)


def tree_leaves(tree: AnyValue) -> list[AnyValue]:
    """The leaves of a tree."""
    return tree_flatten(tree)[0]


def tree_structure(tree: AnyValue) -> TreeSpec:
    """A tree without its leaves."""
    return tree_flatten(tree)[1]


def tree_map(
    function: Callable[[AnyValue], AnyValue], tree: AnyValue
) -> AnyValue:
    """A tree with what a function gives for each leaf."""
    leaves, spec = tree_flatten(tree)
    return tree_unflatten(map(function, leaves), spec)
