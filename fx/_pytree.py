"""Stage 05, codegen: nested inputs made flat, as generated code calls it.

A function traced with nested `concrete_args` has one placeholder for each
leaf of its inputs, and its generated code begins by taking the inputs apart:

    x_1, x_2, y_1, = fx_pytree.tree_flatten_spec([x, y], self._in_spec)

The spec says which leaves to expect.  A list may be longer than in the trace
and a dict may have more keys; what the trace did not see is not read.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Final, TypeAlias

import torch.return_types

from .torch_internals import pytree
from .usedef.values import Value

FlattenFnSpec: TypeAlias = Callable[[Value, pytree.TreeSpec], list[Value]]
"""The children of a container that a spec knows, in the spec's order."""

FlattenFnExactMatchSpec: TypeAlias = Callable[[Value, pytree.TreeSpec], bool]
"""Whether a container has those children and no others."""

FlattenFuncSpec: TypeAlias = FlattenFnSpec
FlattenFuncExactMatchSpec: TypeAlias = FlattenFnExactMatchSpec


def register_pytree_flatten_spec(
    cls: type[Value],
    flatten_fn_spec: FlattenFnSpec,
    flatten_fn_exact_match_spec: FlattenFnExactMatchSpec | None = None,
) -> None:
    """Register how containers of a type are taken apart.

    Args:
        cls: the type, which torch's own pytree must know as well.
        flatten_fn_spec: gives the children.
        flatten_fn_exact_match_spec: says whether those are all children.

    torch.fx: _pytree.py, register_pytree_flatten_spec
    """
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def _deregister_pytree_flatten_spec(cls: type[Value]) -> None:
    """Forget a type that was registered."""
    del SUPPORTED_NODES[cls]
    del SUPPORTED_NODES_EXACT_MATCH[cls]


def tree_flatten_spec(tree: Value, spec: pytree.TreeSpec) -> list[Value]:
    """The leaves of `tree`, as far as `spec` knows it, from left to right.

    Args:
        tree: nested containers.
        spec: what the trace saw in this place.

    Returns:
        As many leaves as the spec has.

    Raises:
        RuntimeError: a container of a type that is not registered here is not
            what the spec says.
        KeyError, IndexError: a child that the spec knows is missing.

    Cost: O(leaves of the spec).

    torch.fx: _pytree.py, tree_flatten_spec
    """
    if spec.is_leaf():
        return [tree]
    flatten = SUPPORTED_NODES.get(spec.type)
    if flatten is None:
        leaves, found = pytree.tree_flatten(tree)
        if found != spec:
            raise RuntimeError(
                f"Real spec {found} of object {tree} is different from "
                f"expected spec {spec}: call with inputs of the structure "
                "that was traced, or register the type with "
                "register_pytree_flatten_spec"
            )
        return leaves
    leaves = []
    children = zip(flatten(tree, spec), child_specs(spec), strict=False)
    for child, child_spec in children:
        leaves += tree_flatten_spec(child, child_spec)
    return leaves


def child_specs(spec: Value) -> list[pytree.TreeSpec]:
    """The specs of the children, which torch before 2.10 keeps elsewhere."""
    known: list[pytree.TreeSpec] = (
        spec.children() if hasattr(spec, "children") else spec.children_specs
    )
    return known


def _values(tree: dict[Value, Value], spec: pytree.TreeSpec) -> list[Value]:
    """The values of the keys that the spec knows."""
    return [tree[key] for key in spec.context]


def _items(tree: Value, spec: pytree.TreeSpec) -> list[Value]:
    """As many items as the spec knows."""
    return [tree[index] for index in range(spec.num_children)]


def _same_length(tree: Value, spec: pytree.TreeSpec) -> bool:
    """Whether the container has only what the spec knows."""
    return len(tree) == spec.num_children


SUPPORTED_NODES: Final[dict[object, FlattenFnSpec]] = {
    dict: _values,
    list: _items,
    tuple: _items,
    # Not a type, but what a spec has as the type of every named tuple.
    namedtuple: _items,
    **dict.fromkeys(torch.return_types.all_return_types, _items),
}
"""Container type -> its children; `register_pytree_flatten_spec` adds more."""

SUPPORTED_NODES_EXACT_MATCH: Final[
    dict[object, FlattenFnExactMatchSpec | None]
] = dict.fromkeys(SUPPORTED_NODES, _same_length)
"""Container type -> whether the children are all that the spec knows."""
