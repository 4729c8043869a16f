"""Stage 07, rewriter: a graph as it was, to go back to.

A rewrite touches many nodes, and may be interrupted between any two of its
steps: by a hook that raises, by Ctrl-C, by code that Python refuses.  Before
the first edit a `Snapshot` writes down the order, the names and the edges;
`restore` puts them back, from whatever state the graph is in.
"""

# It takes nodes and graphs apart, as the files that make them do.
# ruff: noqa: SLF001

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import NamedTuple

from torch import nn

from ..graph import Graph
from ..immutable_collections import immutable_dict
from ..node import Node
from ..ordered.linked_list import Link
from ..ordered.opcodes import Target
from ..usedef.values import Argument, Value


class _Row(NamedTuple):
    """What a rewrite may change of one node."""

    node: Node
    name: str
    target: Target
    args: tuple[Argument, ...]
    kwargs: immutable_dict[str, Argument]
    inputs: tuple[Node, ...]
    users: tuple[Node, ...]


class Snapshot:
    """The order, names and edges of a graph at one moment.

    Meta is not part of it, nor what hooks of the owning module have done.
    """

    def __init__(self, graph: Graph) -> None:
        """Write down how a graph is.

        Cost: O(nodes + uses).
        """
        self.graph = graph
        self.rows: list[_Row] = [
            _Row(
                node,
                node._name,
                node.target,
                node._args,
                node._kwargs,
                node._inputs,
                tuple(node.users),
            )
            for node in graph.nodes
        ]
        names = vars(graph._graph_namespace)
        self.names: dict[str, Value] = {
            key: copy.copy(table) for key, table in names.items()
        }
        self.insert: Callable[[Node], None] = graph._insert

    def restore(self) -> None:
        """Make the graph what it was; nodes added since are erased.

        May be called again if it was interrupted itself.

        Cost: O(nodes + uses).
        """
        graph = self.graph
        kept = {row.node for row in self.rows}
        for node in graph.nodes:
            if node not in kept:
                node._erased = True
        self._put_in_order()
        for row in self.rows:
            node = row.node
            node._name, node.target = row.name, row.target
            node._args, node._kwargs = row.args, row.kwargs
            node._inputs = row.inputs
            node.users.clear()
            node.users.update(dict.fromkeys(row.users))
        names = vars(graph._graph_namespace)
        for key, table in self.names.items():
            names[key] = copy.copy(table)
        graph._insert = self.insert

    def _put_in_order(self) -> None:
        """Make the ring anew, of links that are on their own."""
        root = self.graph._root
        Link.__init__(root)
        for row in self.rows:
            Link.__init__(row.node)
            Link.prepend(root, row.node)
        self.graph.nodes._len = len(self.rows)


class Attributes:
    """What is put into a module, to be taken out again if need be."""

    def __init__(self, root: nn.Module) -> None:
        """Begin with nothing put into `root`."""
        self.root = root
        self.before: list[tuple[nn.Module, dict[str, dict[str, object]]]] = []

    def save(self) -> None:
        """Write down which attributes each module has now."""
        held = ("_modules", "_parameters", "_buffers")
        self.before = [
            (module, {name: dict(vars(module)[name]) for name in held})
            for module in self.root.modules()
        ]

    def restore(self) -> None:
        """Take out what was put in since `save`."""
        for module, tables in self.before:
            for name, table in tables.items():
                live = vars(module)[name]
                live.clear()
                live.update(table)
