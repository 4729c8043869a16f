"""Stage 07, rewriter: undo the edits of a graph if a rewrite fails.

A rewrite touches many nodes, and may be interrupted between any two of its
edits: by a hook that raises, by Ctrl-C, by code that Python refuses.  Before
the first edit a `Snapshot` notes the order, the names and the edges; `restore`
puts them back, from whatever state the graph is in by then.

To undo each step would need a log that is itself never interrupted in the wrong
place.  Writing the graph down costs one walk, about what a rewrite costs
anyway.  Node objects, dicts and tables are kept and filled again, because
somebody may hold them.  Names count: without them, the next nodes would be
numbered on from names that no longer exist.
"""

# Restoring writes private fields, as the files that define them do.
# ruff: noqa: SLF001

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Final

from torch.jit import ScriptModule

from ..graph import Graph
from ..graph_module import GraphModule
from ..linked_list.linked_list import Link
from ..node import Node
from ..use_def.errors import refuse_torchs
from ..use_def.values import AnyValue

_FIELDS: Final = ("_name", "_target", "_args", "_kwargs", "_inputs", "meta")
"""What a rewrite may change of a node, besides its users and its place."""

_fields_of: Final[Callable[[Node], tuple[AnyValue, ...]]] = attrgetter(*_FIELDS)


class Snapshot:
    """The order, names and edges of a module's graph, and its attributes.

    As a context manager it restores the module if something is raised. What is
    in `meta` is not part of it, nor are changes that hooks of the module have
    made elsewhere.
    """

    def __init__(self, gm: GraphModule) -> None:
        """Note how a module is.

        Cost: O(nodes + uses + attributes).
        """
        refuse_torchs(gm)
        self.graph: Graph = gm.graph
        nodes = self.graph.nodes
        self.fields: dict[Node, tuple[AnyValue, ...]] = {
            node: _fields_of(node) for node in nodes
        }
        self.users: dict[Node, list[Node]] = {n: [*n.users] for n in nodes}
        names = vars(self.graph._graph_namespace)
        self.names: dict[str, AnyValue] = {
            key: copy.copy(table) for key, table in names.items()
        }
        self.insert: Callable[[Node], None] = self.graph._insert
        self.attributes: list[tuple[AnyValue, AnyValue]] = [
            (table, copy.copy(table))
            for m in gm.modules()
            if not isinstance(m, ScriptModule)  # which nothing is added to
            for table in (
                *(m._modules, m._parameters, m._buffers),
                m._non_persistent_buffers_set,
            )
        ]

    def __enter__(self) -> Snapshot:
        """Do nothing: the constructor has noted everything."""
        return self

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

        Everything is assigned and nothing compared, so each assignment is right
        the second time, too.

        Cost: O(nodes + uses + attributes).
        """
        graph = self.graph
        graph._table.forget()
        for node in graph.nodes:
            if node not in self.fields:
                node._erased = True
        self._put_in_order()
        for node, fields in self.fields.items():
            for name, value in zip(_FIELDS, fields, strict=True):
                setattr(node, name, value)
            node.users.clear()
            node.users.update(dict.fromkeys(self.users[node]))
        names = vars(graph._graph_namespace)
        for key, table in self.names.items():
            names[key] = copy.copy(table)
        graph._insert = self.insert
        for live, before in self.attributes:
            live.clear()
            live.update(before)

    def recompute(
        self, gm: GraphModule, changed: Mapping[Node, AnyValue]
    ) -> None:
        """Note anew what the values of nodes are like, which had this `meta`.

        `import fx` puts a method here that does, as it can be asked for.
        """

    def _put_in_order(self) -> None:
        """Link the nodes again in their old order.

        The list may be broken anywhere, so it is made anew and not repaired.
        """
        root = self.graph._root
        Link.__init__(root)
        for node in self.fields:
            Link.__init__(node)
            Link.prepend(root, node)
        self.graph.nodes._len = len(self.fields)
