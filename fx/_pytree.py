"""Stage 05, codegen: nested inputs made flat, as generated code calls it.

A function traced with nested `concrete_args` has one placeholder for each
leaf of its inputs, and its generated code begins by taking the inputs apart:

    x_1, x_2, y_1, = fx_pytree.tree_flatten_spec([x, y], self._in_spec)

The spec says which structure the trace has seen.  Inputs of another one are
refused: of a longer list, the graph knows nothing to do with the rest.

The spec leads: torch's own pytree takes apart whatever it is given and says
what it found, which would have to be compared afterwards.  A tuple may stand
for a list and any mapping for a dict, and a named tuple must be of its own
class, because another may have the same fields in another order.
"""

from __future__ import annotations

import sys
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Final, TypeAlias

import torch.return_types

from .torch_private.pytree import pytree
from .use_def.values import AnyValue

FlattenFnSpec: TypeAlias = Callable[[AnyValue, pytree.TreeSpec], list[AnyValue]]
"""The children of a container that a spec knows, in the spec's order."""

FlattenFnExactMatchSpec: TypeAlias = Callable[[AnyValue, pytree.TreeSpec], bool]
"""Whether a container has those children and no others."""

FlattenFuncSpec: TypeAlias = FlattenFnSpec
FlattenFuncExactMatchSpec: TypeAlias = FlattenFnExactMatchSpec


def register_pytree_flatten_spec(
    cls: type[AnyValue],
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


def _deregister_pytree_flatten_spec(cls: type[AnyValue]) -> None:
    """Forget a type that was registered."""
    del SUPPORTED_NODES[cls]
    del SUPPORTED_NODES_EXACT_MATCH[cls]


def tree_flatten_spec(tree: AnyValue, spec: pytree.TreeSpec) -> list[AnyValue]:
    """The leaves of `tree`, whose structure is `spec`, from left to right.

    A tuple and other sequences may stand for a list, and a mapping for a dict;
    but a named tuple is of its class.

    Each level adds its key to an error on the way out, so that a call that
    succeeds pays nothing for it.

    Args:
        tree: nested containers.
        spec: what the trace saw in this place.

    Returns:
        As many leaves as the spec has.

    Raises:
        RuntimeError: the structure is another one. Says which input of the
            calling function it is in.

    Cost: O(leaves of the spec).

    torch.fx: _pytree.py, tree_flatten_spec
    """
    return flatten_input(tree, spec, None)


def flatten_input(
    tree: AnyValue, spec: pytree.TreeSpec, name: str | None
) -> list[AnyValue]:
    """The leaves of a tree, as `tree_flatten_spec`.

    Args:
        tree: nested containers.
        spec: what the trace saw in this place.
        name: of the input, for the error; None to ask the calling function.
    """
    leaves: list[AnyValue] = []
    try:
        _add_leaves(leaves, tree, spec)
    except _Other as other:
        if name is None:
            # Not before: torch.compile cannot trace `_getframe`.
            name = _input_at(other.path, tree, sys._getframe(2))
        keys = "".join(f"[{key!r}]" for key in reversed(other.path))
        where = f", for the input {name}{keys}" if name or keys else ""
        raise RuntimeError(
            f"{other}{where}: a graph is for inputs of the structure that was "
            "traced. Pass such inputs, or trace again with concrete_args of "
            "this structure"
        ) from None
    return leaves


class _Other(Exception):
    """A container is not what a spec says.

    Attributes:
        path: the keys that lead to it, the innermost first.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.path: list[AnyValue] = []


def _add_leaves(
    leaves: list[AnyValue], tree: AnyValue, spec: pytree.TreeSpec
) -> None:
    """Append the leaves of a tree, if its structure is that of the spec."""
    if spec.is_leaf():
        leaves.append(tree)
        return
    flatten = SUPPORTED_NODES.get(spec.type)
    if flatten is None:
        more, found = pytree.tree_flatten(tree)
        if found != spec:
            raise _Other(
                f"Real spec {found} of object {tree} is different from "
                f"expected spec {spec}"
            )
        leaves += more
        return
    fits = SUPPORTED_NODES_EXACT_MATCH.get(spec.type)
    if fits is not None and not fits(tree, spec):
        raise _Other(
            f"{_said(tree)} was given, and {_said_of_spec(spec)} was traced"
        )
    children, specs = flatten(tree, spec), child_specs(spec)
    if len(children) != len(specs):
        raise _Other(
            f"{len(children)} items were given, and {len(specs)} were traced"
        )
    for index, child in enumerate(children):
        try:
            _add_leaves(leaves, child, specs[index])
        except _Other as found:
            has_keys = spec.type is dict
            found.path.append(spec.context[index] if has_keys else index)
            raise


def _said(tree: AnyValue) -> str:
    """A container in words, or what is in the place of one."""
    text = f"a {type(tree).__name__}"
    if isinstance(tree, Mapping):
        return f"{text} with the keys {[*tree]}"
    return f"{text} of {len(tree)}" if isinstance(tree, Sequence) else text


def _said_of_spec(spec: pytree.TreeSpec) -> str:
    """The container of a spec in words."""
    if spec.type is dict:
        return f"a dict with the keys {[*spec.context]}"
    kind = spec.context if spec.type is namedtuple else spec.type
    return f"a {kind.__name__} of {spec.num_children}"


def _input_at(path: list[AnyValue], tree: AnyValue, frame: FrameType) -> str:
    """The parameter that a path begins at, which it loses; "" if unknown.

    A name is believed only if each parameter of the caller is the very object
    in the list, since anybody may call `tree_flatten_spec`.

    Args:
        path: the keys, the innermost first.
        tree: the inputs, as [x, y] or as ([x], {"y": y}).
        frame: runs generated code, or is anybody's.
    """
    code, held = frame.f_code, frame.f_locals
    given = tree if type(tree) is list else []
    if type(tree) is tuple and list(map(type, tree)) == [list, dict]:
        given = [*tree[0], *tree[1].values()]
    names = code.co_varnames[: code.co_argcount][-len(given) :]
    known = [held.get(name) for name in names]
    if not (path and given) or list(map(id, given)) != list(map(id, known)):
        return ""
    key = path.pop()
    if type(tree) is tuple:
        in_args, key = key == 0, path.pop()
        return names[key] if in_args else str(key)
    return names[key]


def child_specs(spec: AnyValue) -> list[pytree.TreeSpec]:
    """The specs of the children, which torch before 2.10 keeps elsewhere."""
    known: list[pytree.TreeSpec] = (
        spec.children() if hasattr(spec, "children") else spec.children_specs
    )
    return known


def _values(
    tree: dict[AnyValue, AnyValue], spec: pytree.TreeSpec
) -> list[AnyValue]:
    """The values of the keys that the spec knows."""
    return [tree[key] for key in spec.context]


def _items(tree: AnyValue, spec: pytree.TreeSpec) -> list[AnyValue]:
    """As many items as the spec knows."""
    return [tree[index] for index in range(spec.num_children)]


def _has_keys(tree: AnyValue, spec: pytree.TreeSpec) -> bool:
    """Whether it is a mapping with just the keys that the spec knows."""
    return isinstance(tree, Mapping) and tree.keys() == {*spec.context}


def _is_as_long(tree: AnyValue, spec: pytree.TreeSpec) -> bool:
    """Whether it is a sequence of items, and as long.

    That is not a tensor or a string, nor a tuple of which the items have names.
    """
    kind = type(tree)
    others = issubclass(kind, str | bytes) or kind in _OF_TORCH
    if others or hasattr(kind, "_fields") or not issubclass(kind, Sequence):
        return False
    return len(tree) == spec.num_children


_OF_TORCH: Final = frozenset(torch.return_types.all_return_types)

SUPPORTED_NODES: Final[dict[object, FlattenFnSpec]] = {
    dict: _values,
    list: _items,
    tuple: _items,
    # Not a type, but what a spec has as the type of every named tuple.
    namedtuple: _items,
    **dict.fromkeys(_OF_TORCH, _items),
}
"""Container type -> its children; `register_pytree_flatten_spec` adds more."""

SUPPORTED_NODES_EXACT_MATCH: Final[
    dict[object, FlattenFnExactMatchSpec | None]
] = {
    dict: _has_keys,
    list: _is_as_long,
    tuple: _is_as_long,
    namedtuple: lambda tree, spec: isinstance(tree, spec.context),
    **dict.fromkeys(_OF_TORCH, lambda tree, spec: isinstance(tree, spec.type)),
}
"""Container type -> whether the children are all that the spec knows."""
