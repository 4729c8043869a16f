"""Stage 02, use-def: a graph as a flat table, to be pickled.

Pickle follows references, so a chain of 1,000 nodes pickled as objects is
1,000 calls deep.  As a table it is flat: one row a node, and an argument node
is the number of its row.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, cast

import torch

from ..immutable_collections import immutable_dict
from ..node import Node
from ..ordered.opcodes import Opcode, Target
from ..usedef.arguments import map_aggregate
from ..usedef.values import Argument, Value

if TYPE_CHECKING:
    from ..graph import Graph


class RowNumber(NamedTuple):
    """Stands in a row for the node of another row."""

    row: int


class OpName(NamedTuple):
    """Stands for a torch operator, which pickle cannot name by itself."""

    namespace: str
    op: str
    overload: str


class Numbered(NamedTuple):
    """Stands in meta for a value that has row numbers inside."""

    value: Value


class Row(NamedTuple):
    """A node, written down.

    Attributes:
        users: the rows of its users, if they are not in the order of rows.
    """

    op: Opcode
    target: Target | OpName
    args: Argument
    kwargs: Argument
    name: str
    type: Value
    meta: dict[str, Value]
    extra: dict[str, Value]
    users: tuple[int, ...]


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
            _order_of_users(node, number),
        )
        for node in graph._nodes
    ]


def add_rows(graph: Graph, rows: list[Row]) -> None:
    """Make the nodes of a table at the end of an empty graph."""
    nodes: list[Node] = []
    for row in rows:
        target = _find_op(row.target)
        node = Node(graph, row.name, row.op, target, (), {}, row.type)
        if row.extra:
            vars(node).update(row.extra)
        graph._add(node)
        nodes.append(node)
    # A graph that is being edited may use a value above its definition.
    for row, node in zip(rows, nodes, strict=True):
        args, kwargs = _incoming(row.args, nodes), _incoming(row.kwargs, nodes)
        node._update_args_kwargs(args, kwargs)
        node.meta = {
            key: _incoming(value.value, nodes)
            if isinstance(value, Numbered)
            else value
            for key, value in row.meta.items()
        }
    for row, node in zip(rows, nodes, strict=True):
        if row.users:
            _put_users_in_order(node, [nodes[i] for i in row.users])


def _order_of_users(
    node: Node, number: dict[Node, RowNumber]
) -> tuple[int, ...]:
    """The rows of a node's users, or nothing if they are in their order."""
    rows = [number[user].row for user in node.users if user in number]
    return () if rows == sorted(rows) else tuple(rows)


def _put_users_in_order(node: Node, order: list[Node]) -> None:
    """Have the users of `node` in an order; who uses it stays the same."""
    users = node.users
    node.users = {user: None for user in order if user in users} | users


def _outgoing(a: Argument, number: dict[Node, RowNumber]) -> Argument:
    """An argument with row numbers for nodes and names for operators."""

    def leaf(x: Argument) -> Argument:
        return number[x] if isinstance(x, Node) else _name_op(x)

    return map_aggregate(a, leaf)


def _outgoing_meta(
    meta: dict[str, Value], number: dict[Node, RowNumber]
) -> dict[str, Value]:
    """Meta with row numbers for the graph's own nodes, at any depth.

    A value without such nodes is pickled as it is. A node of another graph
    takes that graph with it.
    """

    def leaf(x: Value) -> Value:
        return number.get(x, x) if isinstance(x, Node) else x

    def has_own(value: Value) -> bool:
        return _any_leaf(value, lambda x: isinstance(x, Node) and x in number)

    return {
        key: Numbered(_rebuild(value, leaf)) if has_own(value) else value
        for key, value in meta.items()
    }


def _incoming(a: Argument, nodes: list[Node]) -> Value:
    """The argument that a row stands for, its nodes being made already."""

    def leaf(x: Value) -> Value:
        return nodes[x.row] if isinstance(x, RowNumber) else _find_op(x)

    return _rebuild(a, leaf)


def _rebuild(a: Value, fn: Callable[[Value], Value]) -> Value:
    """`a` with fn(leaf) for each leaf, and its containers as they are.

    `map_aggregate` makes them immutable, and takes a row number for a tuple.
    """
    if isinstance(a, (RowNumber, OpName)):
        return fn(a)
    if isinstance(a, (tuple, list)):
        items = [_rebuild(item, fn) for item in a]
        return type(a)(*items) if hasattr(a, "_fields") else type(a)(items)
    if isinstance(a, dict):
        pairs = {key: _rebuild(value, fn) for key, value in a.items()}
        if isinstance(a, immutable_dict):
            return immutable_dict(pairs)
        new = copy.copy(a)  # a defaultdict, say, stays one
        new.update(pairs)
        return new
    if isinstance(a, slice):
        return slice(*(_rebuild(x, fn) for x in (a.start, a.stop, a.step)))
    if _is_instance_of_dataclass(a) and _any_leaf(a, _is_mark):
        fields = [field for field in dataclasses.fields(a) if field.init]
        names = [field.name for field in fields]
        return type(a)(**{k: _rebuild(getattr(a, k), fn) for k in names})
    return fn(a)


def _any_leaf(a: Value, test: Callable[[Value], bool]) -> bool:
    """Whether `test` is true of some leaf of `a`."""
    items: list[Value] = []
    if isinstance(a, (tuple, list)) and not _is_mark(a):
        items = list(a)
    elif isinstance(a, dict):
        items = list(a.values())
    elif isinstance(a, slice):
        items = [a.start, a.stop, a.step]
    elif _is_instance_of_dataclass(a):
        fields = dataclasses.fields(cast("Value", a))
        items = [getattr(a, field.name) for field in fields]
    else:
        return test(a)
    return any(_any_leaf(item, test) for item in items)


def _is_mark(a: Value) -> bool:
    """Whether `a` is, or is to be, a mark for something else in a row."""
    return isinstance(a, (RowNumber, OpName, Node))


def _is_instance_of_dataclass(a: Value) -> bool:
    """Whether `a` is a dataclass's instance, not the class."""
    return dataclasses.is_dataclass(a) and not isinstance(a, type)


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
