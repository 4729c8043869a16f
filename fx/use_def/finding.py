"""Stage 02, use-def: a table of the nodes by what they call.

A pass that looks for one function after another should not walk over the whole
graph for each.  So the first `Graph.find_nodes` of a graph makes a table, in
one walk, and from then on each edit keeps it right: making a node, erasing it,
and assigning its `op` or `target`.  Moving a node changes nothing here, because
the nodes found are put in order by their order keys.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import chain
from operator import attrgetter
from typing import Final, Generic, TypeAlias

from ..linked_list.opcodes import Opcode, Target
from ..linked_list.ordered_graph import NodeT

_Found: TypeAlias = dict[Opcode, dict[Hashable, dict[NodeT, None]]]

_BY_PLACE: Final = attrgetter("_sort_key")


class NodeTable(Generic[NodeT]):
    """The nodes of a graph, by opcode and target.

    torch.fx: graph.py, _FindNodesLookupTable
    """

    def __init__(self, nodes: Iterable[NodeT]) -> None:
        """Note nothing yet: most graphs are never asked.

        Args:
            nodes: the nodes of a graph, to be walked at the first question.
        """
        self._graph_nodes = nodes
        self._found: _Found[NodeT] | None = None

    def forget(self) -> None:
        """Begin again at the next question: all nodes may have changed."""
        self._found = None

    def add(self, node: NodeT) -> None:
        """Note a node that is in the graph."""
        if self._found is not None:
            _note(self._found, node)

    def drop(self, node: NodeT) -> bool:
        """Forget a node, and say whether it was known.

        Its opcode and target must be those that it was noted with.
        """
        if self._found is None:
            return False
        targets = self._found.get(node.op, {})
        key = _key(node.target)
        nodes = targets.get(key, {})
        if node not in nodes:
            return False
        del nodes[node]
        if not nodes:
            del targets[key]
        return True

    def find(self, op: Opcode, target: Target | None) -> list[NodeT]:
        """The nodes with an opcode and, unless it is None, a target, in order.

        Cost: O(found), if they were made in order; else O(found log found).
        The first time O(nodes).
        """
        table = self._found
        if table is None:
            # It is kept when it is whole: the walk may be interrupted, or
            # another thread may ask meanwhile.
            table = {}
            for node in self._graph_nodes:
                _note(table, node)
            self._found = table
        targets = table.get(op, {})
        nodes: Iterable[NodeT] = chain.from_iterable(targets.values())
        if target is not None:
            nodes = targets.get(_key(target), ())
        return sorted(nodes, key=_BY_PLACE)


def _note(table: _Found[NodeT], node: NodeT) -> None:
    """Put a node into a table."""
    targets = table.setdefault(node.op, {})
    targets.setdefault(_key(node.target), {})[node] = None


def _key(target: Target) -> Hashable:
    """What tells targets apart: an object without a hash is only itself."""
    try:
        hash(target)
    except TypeError:
        return id(target)
    return target
