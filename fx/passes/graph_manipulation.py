"""Passes: call something else, and how many bytes values and weights take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch

from ..graph_module import GraphModule
from ..linked_list.opcodes import Opcode, Target
from ..node import Node
from ..torch_private.pytree import pytree
from ..use_def.dotted_path import find
from ..use_def.values import AnyValue
from .shape_prop import ShapeProp, TensorMetadata

__all__ = [
    "get_size_of_all_nodes",
    "get_size_of_node",
    "get_tensor_meta",
    "replace_target_nodes_with",
    "size_bytes",
]


def replace_target_nodes_with(
    fx_module: GraphModule,
    old_op: Opcode,
    old_target: Target,
    new_op: Opcode,
    new_target: Target,
) -> None:
    """Let the nodes that call one thing call another, and recompile.

    They keep their names, arguments, types and notes.

    Cost: O(nodes), and recompiling.

    torch.fx: passes/graph_manipulation.py, replace_target_nodes_with; it makes
    the graph anew, without the types and notes of nodes and without the
    structure of nested inputs.
    """
    for node in fx_module.graph.nodes:
        if node.op == old_op and node.target == old_target:
            node.op, node.target = new_op, new_target
    fx_module.recompile()


class size_bytes(NamedTuple):
    """Bytes of a node's value, and with the parameters of its module.

    torch.fx: passes/graph_manipulation.py, size_bytes
    """

    output_size: int
    total_size: int


def get_tensor_meta(node: Node) -> AnyValue:
    """What `ShapeProp` has noted of a node's value.

    Raises:
        RuntimeError: it has noted nothing, or the value has no tensor.

    torch.fx: passes/graph_manipulation.py, get_tensor_meta
    """
    noted = node.meta.get("tensor_meta")
    if not noted:
        raise RuntimeError(
            f"Node {node} has no tensor metadata associated with it! "
            "Check that shape propagation has run."
        )
    return noted


def get_size_of_all_nodes(
    fx_module: GraphModule, args: Sequence[torch.Tensor] | None = None
) -> None:
    """Set `size_bytes` of all nodes but the output.

    Args:
        fx_module: the module.
        args: sample inputs, with which `ShapeProp` is run; None if it has
            run.

    Raises:
        RuntimeError: as `get_size_of_node`.

    torch.fx: passes/graph_manipulation.py, get_size_of_all_nodes
    """
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    sized: list[AnyValue] = [
        node for node in fx_module.graph.nodes if node.op != "output"
    ]
    for node in sized:
        node.size_bytes = get_size_of_node(fx_module, node)


def get_size_of_node(fx_module: GraphModule, node: Node) -> size_bytes:
    """The bytes of a node's value, and with the parameters of its module.

    A value of several tensors has the bytes of all.

    Raises:
        RuntimeError: as `get_tensor_meta`.

    torch.fx: passes/graph_manipulation.py, get_size_of_node
    """
    output = sum(_bytes_noted(get_tensor_meta(node)))
    weights = 0
    if node.op == "call_module":
        module = find(fx_module, str(node.target))
        weights = sum(p.nbytes for p in module.parameters())
    return size_bytes(output, output + weights)


def _bytes_noted(noted: AnyValue) -> Iterator[int]:
    """The bytes of each tensor in what `ShapeProp` has noted."""
    leaves = pytree.tree_leaves(
        noted, is_leaf=lambda leaf: isinstance(leaf, TensorMetadata)
    )
    for leaf in leaves:
        if isinstance(leaf, TensorMetadata):
            yield leaf.shape.numel() * leaf.dtype.itemsize
