"""Stage 07, rewriter: undo the edits of a graph if a rewrite fails.

A rewrite touches many nodes, and may be interrupted between any two of its
edits: by a hook that raises, by Ctrl-C, by code that Python refuses.  Before
the first edit a `Snapshot` notes the order, the names and the edges; `restore`
puts them back, from whatever state the graph is in by then.
"""

# Restoring writes private fields, as the files that define them do.
# ruff: noqa: SLF001

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import NamedTuple

from ..graph import Graph
from ..graph_module import GraphModule
from ..immutable_collections import immutable_dict
from ..node import Node
from ..ordered.linked_list import Link
from ..ordered.opcodes import Target
from ..usedef.values import Argument, Value


class _Row(NamedTuple):
    """The fields of one node that a rewrite may change."""

    node: Node
    name: str
    target: Target
    args: tuple[Argument, ...]
    kwargs: immutable_dict[str, Argument]
    inputs: tuple[Node, ...]
    users: tuple[Node, ...]


class Snapshot:
    """The order, names and edges of a module's graph, and its attributes.

    As a context manager it restores the module if something is raised. `meta`
    is not part of it, nor are changes that hooks of the module have made
    elsewhere.
    """

    def __init__(self, gm: GraphModule) -> None:
        """Note how a module is.

        Cost: O(nodes + uses + attributes).
        """
        self.graph: Graph = gm.graph
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
            for node in self.graph.nodes
        ]
        names = vars(self.graph._graph_namespace)
        self.names: dict[str, Value] = {
            key: copy.copy(table) for key, table in names.items()
        }
        self.insert: Callable[[Node], None] = self.graph._insert
        held = ("_modules", "_parameters", "_buffers")
        self.attributes: list[tuple[Value, dict[str, Value]]] = [
            (vars(module)[name], dict(vars(module)[name]))
            for module in gm.modules()
            for name in held
        ]

    def __enter__(self) -> None:
        """Do nothing: the constructor has noted everything."""

    def __exit__(
        self, kind: object, raised: BaseException | None, trace: object
    ) -> None:
        """Restore if something was raised, even if that is interrupted."""
        if raised is None:
            return
        try:
            self.restore()
        except BaseException:
            self.restore()
            raise

    def restore(self) -> None:
        """Make the module what it was; nodes added since are erased.

        May be called again if it was interrupted itself.

        Cost: O(nodes + uses + attributes).
        """
        graph = self.graph
        graph._table.forget()
        kept = {row.node for row in self.rows}
        for node in graph.nodes:
            if node not in kept:
                node._erased = True
        self._put_in_order()
        for row in self.rows:
            node = row.node
            node._name, node._target = row.name, row.target
            node._args, node._kwargs = row.args, row.kwargs
            node._inputs = row.inputs
            node.users.clear()
            node.users.update(dict.fromkeys(row.users))
        names = vars(graph._graph_namespace)
        for key, table in self.names.items():
            names[key] = copy.copy(table)
        graph._insert = self.insert
        for live, before in self.attributes:
            live.clear()
            live.update(before)

    def _put_in_order(self) -> None:
        """Link the nodes again in their old order."""
        root = self.graph._root
        Link.__init__(root)
        for row in self.rows:
            Link.__init__(row.node)
            Link.prepend(root, row.node)
        self.graph.nodes._len = len(self.rows)
