"""Stage 02, use-def: a graph as a flat table, to be pickled.

Pickle follows references, so a chain of 1,000 nodes pickled as objects is
1,000 calls deep.  As a table it is flat: one row a node, and an argument node
is the number of its row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from .arguments import Argument, Target, Value, map_aggregate, map_arg
from .node import Node
from .opcodes import Opcode

if TYPE_CHECKING:
    from .graph import Graph


class RowNumber(NamedTuple):
    """Stands in a row for the node of another row."""

    row: int


class OpName(NamedTuple):
    """Stands for a torch operator, which pickle cannot name by itself."""

    namespace: str
    op: str
    overload: str


class Row(NamedTuple):
    """A node, written down."""

    op: Opcode
    target: Target | OpName
    args: Argument
    kwargs: Argument
    name: str
    type: Value
    meta: Argument
    extra: dict[str, Value]


def to_rows(graph: Graph) -> list[Row]:
    """The nodes of `graph` as a table without references among the rows."""
    number = {node: RowNumber(i) for i, node in enumerate(graph._nodes)}
    return [
        Row(
            node.op,
            _name_op(node.target),
            _outgoing(node._args, number),
            _outgoing(dict(node._kwargs), number),
            node._name,
            node.type,
            _outgoing_meta(node.meta, number),
            getattr(node, "__dict__", {}),
        )
        for node in graph._nodes
    ]


def add_rows(graph: Graph, rows: list[Row]) -> None:
    """Make the nodes of a table at the end of an empty graph."""
    nodes: list[Node] = []
    for row in rows:
        node = Node(
            graph,
            row.name,
            row.op,
            _find_op(row.target),
            _incoming(row.args, nodes),
            _incoming(row.kwargs, nodes),
            row.type,
        )
        if row.extra:
            vars(node).update(row.extra)
        graph._add(node)
        nodes.append(node)
    for row, node in zip(rows, nodes, strict=True):
        node.meta = dict(_incoming(row.meta, nodes))


def _outgoing(a: Argument, number: dict[Node, RowNumber]) -> Argument:
    """An argument with row numbers for nodes and names for operators."""

    def leaf(x: Argument) -> Argument:
        return number[x] if isinstance(x, Node) else _name_op(x)

    return map_aggregate(a, leaf)


def _outgoing_meta(
    meta: dict[str, Value], number: dict[Node, RowNumber]
) -> dict[str, Value]:
    """Meta keeps its own containers; only direct nodes become numbers."""
    if not any(isinstance(value, Node) for value in meta.values()):
        return meta
    return {key: map_arg(meta[key], number.__getitem__) for key in meta}


def _incoming(a: Argument, nodes: list[Node]) -> Value:
    """The argument that a row stands for, its nodes being made already."""
    if isinstance(a, RowNumber):
        return nodes[a.row]
    if isinstance(a, OpName):
        return _find_op(a)
    if isinstance(a, (tuple, list)):
        items = [_incoming(item, nodes) for item in a]
        return type(a)(*items) if hasattr(a, "_fields") else type(a)(items)
    if isinstance(a, dict):
        return type(a)((k, _incoming(v, nodes)) for k, v in a.items())
    if isinstance(a, slice):
        ends = (a.start, a.stop, a.step)
        return slice(*(_incoming(end, nodes) for end in ends))
    return a


def _name_op(target: Value) -> Value:
    """A torch operator by its name; anything else as it is."""
    if isinstance(target, torch._ops.OpOverload):
        namespace, _, op = target._schema.name.partition("::")
        return OpName(namespace, op, target._overloadname)
    if isinstance(target, torch._ops.OpOverloadPacket):
        namespace, _, op = target._qualified_op_name.partition("::")
        return OpName(namespace, op, "")
    return target


def _find_op(target: Value) -> Value:
    """The torch operator of a name; anything else as it is."""
    if not isinstance(target, OpName):
        return target
    packet = getattr(getattr(torch.ops, target.namespace), target.op)
    return getattr(packet, target.overload) if target.overload else packet
