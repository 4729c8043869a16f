"""Stage 02, use-def: torch's functions for nested containers, as trees.

A nested structure of tuples, lists, dicts and registered classes is a tree,
and what is in it at the end are its leaves.  `torch.utils._pytree` takes such
trees apart and puts them together; each use in fx goes through here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ..use_def.values import AnyValue
from .names import find, find_or

if TYPE_CHECKING:
    from torch.utils._pytree import MappingKey as MappingKey
    from torch.utils._pytree import SequenceKey as SequenceKey
    from torch.utils._pytree import TreeSpec as TreeSpec
    from torch.utils._pytree import arg_tree_leaves as arg_tree_leaves
    from torch.utils._pytree import tree_flatten as tree_flatten
    from torch.utils._pytree import tree_is_leaf as tree_is_leaf
    from torch.utils._pytree import tree_leaves as tree_leaves
    from torch.utils._pytree import tree_map as tree_map
    from torch.utils._pytree import tree_map_only as tree_map_only
    from torch.utils._pytree import tree_structure as tree_structure
    from torch.utils._pytree import tree_unflatten as tree_unflatten
else:

    def _of_pytree(name: str, needed_for: str) -> AnyValue:
        """The object of that name."""
        path = f"torch.utils._pytree:{name}"
        return find(path, needed_for=needed_for)

    TreeSpec = _of_pytree("TreeSpec", "nested inputs")
    MappingKey = _of_pytree("MappingKey", "paths into the lists of a node")
    SequenceKey = _of_pytree("SequenceKey", "paths into the dicts of a node")
    arg_tree_leaves = _of_pytree("arg_tree_leaves", "make_fx")
    tree_flatten = _of_pytree("tree_flatten", "nested inputs")
    tree_is_leaf = _of_pytree("tree_is_leaf", "nested concrete_args")
    tree_leaves = _of_pytree("tree_leaves", "nested values")
    tree_map = _of_pytree("tree_map", "nested inputs")
    tree_map_only = _of_pytree("tree_map_only", "ShapeProp")
    tree_structure = _of_pytree("tree_structure", "nested inputs")
    tree_unflatten = _of_pytree("tree_unflatten", "nested inputs")

MODULE: Final[AnyValue] = find(
    "torch.utils._pytree", needed_for="code with pytree.tree_flatten in it"
)
"""The module itself: generated code calls it by the name `pytree`."""

register_pytree_node: Final[Callable[..., None]] = find_or(
    "torch.utils._pytree:register_pytree_node",
    lambda *args, **kwargs: None,
    without="to torch, a list in a node's arguments is one leaf",
)
"""Makes a class one of the containers."""
