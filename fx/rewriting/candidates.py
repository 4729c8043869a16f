"""Stage 07, rewriter: the nodes at which a match of a pattern may end.

Matching begins at an anchor, a node that the pattern returns.  Its candidates
are the nodes of the graph that call the same operation, and of these only such
as lie a few steps below an occurrence of the pattern's rarest operation.  A
second anchor is looked for below the nodes that are paired already.

Nothing but the time depends on it, since each candidate is matched as always.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..graph import Graph
from ..node import Node
from ..usedef.values import Value
from .patterns import PreparedPattern, upstream


class Candidates:
    """The candidates for the anchors of one pattern in one graph.

    Attributes:
        pools: for each anchor, its candidates in order; empty lists if some
            node of the pattern has no possible partner.
    """

    def __init__(
        self,
        pattern: PreparedPattern,
        graph: Graph,
        name: str,
        *,
        exhaustive: bool,
    ) -> None:
        """Look up all nodes that call what the pattern calls.

        Args:
            pattern: what to look for.
            graph: where to look.
            name: nodes with this in their names are candidates, too.
            exhaustive: keep candidates that cannot lead to a match.

        Cost: O(nodes found + their uses); O(nodes) the first time, and with
        options.
        """
        self._pattern = pattern
        calls = [n for n in pattern.nodes if not pattern.nodes[n].wildcard]
        found = pattern.comparison.partners(graph, calls)
        named = [n for n in graph.nodes if name in n.name] if name else []
        self._possible: set[Node] = set().union(named, *found.values())
        self.pools: list[list[Node]] = [[] for _ in pattern.anchors]
        self._ends: list[set[Node]] = []
        if not (all(found.values()) or name or exhaustive):
            return
        for place, anchor in enumerate(pattern.anchors):
            pool = found.get(anchor) or []
            if anchor not in found:
                pool = [*graph.nodes]
            elif name:
                pool = sorted({*pool, *named})
            elif not exhaustive:
                needed = upstream(anchor, ())
                rare = min((found[n] for n in needed if n in found), key=len)
                if 4 * len(rare) < len(pool):
                    pool = self._below(rare, {*pool})
            self.pools[place] = pool
            self._ends.append({*pool})

    def near(self, place: int, paired: Mapping[Node, Value]) -> list[Node]:
        """The candidates for a further anchor, given what is paired already.

        They are below a node that the anchors share, an operation if there is
        one: an input may have many more users.
        """
        user = upstream(self._pattern.anchors[place], paired)
        shared = [node for node in user if node in paired]
        shared.sort(key=lambda node: node.op == "placeholder")
        start = paired[shared[0]] if shared else None
        if not isinstance(start, Node):
            return self.pools[place]
        return self._below([start], self._ends[place])

    def _below(self, starts: Iterable[Node], ends: set[Node]) -> list[Node]:
        """Those of `ends` that are not further below than in the pattern."""
        reached = dict.fromkeys(starts)
        front = [*reached]
        for _ in self._pattern.nodes:
            users = {user: None for node in front for user in node.users}
            front = [
                user
                for user in users
                if user in self._possible and user not in reached
            ]
            reached |= dict.fromkeys(front)
        return sorted([node for node in reached if node in ends])
