"""Stage 07, rewriter: the nodes at which a match of a pattern may end.

Matching begins at an anchor, a node that the pattern returns, and every node
of the graph that calls the same operation is a candidate for it.  Two things
keep the candidates few.  Where an inner operation of the pattern is rare in
the graph, only what lies downstream of its occurrences is tried.  And a second
anchor is looked for downstream of the nodes that are paired already.  Both
follow a `Route`, a path in the pattern from one of its nodes to an anchor.

Nothing but the time depends on it, since each candidate is matched as always.
A value can have many users, so a route is followed only from rare nodes, and
long routes are not kept.  A pattern that has a node without a partner is found
nowhere, which one walk of the graph tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..graph import Graph
from ..node import Node
from ..usedef.values import Value
from .patterns import Key, PatternNode, PreparedPattern, upstream

MAX_ROUTES = 8
"""The longest route to an anchor, and the most routes, that are remembered."""

Buckets = dict[Key, list[Node]]
"""The nodes of a graph by their keys."""


class Route(NamedTuple):
    """A path in the pattern, along users, that ends at an anchor.

    Attributes:
        start: the node of the pattern at which it begins.
        path: the nodes behind that, the anchor last.
    """

    start: Node
    path: tuple[Node, ...]


class Candidates:
    """Finds candidates for the anchors of one pattern.

    Attributes:
        pattern: the pattern.
        joins: for each anchor, a route to it from what the anchors before it
            depend on; None if it has nothing in common with them.
        inner: for each anchor, short routes to it from operations that the
            pattern does not return.
    """

    def __init__(self, pattern: PreparedPattern) -> None:
        """Work out the routes.

        Cost: O(size of the pattern · anchors).
        """
        self.pattern = pattern
        self.joins: list[Route | None] = []
        self.inner: dict[Node, list[Route]] = {}
        reached: dict[Node, Node | None] = {}
        for anchor in pattern.anchors:
            self.joins.append(_join(anchor, reached))
            reached |= upstream(anchor, reached)
            self.inner[anchor] = _inner_routes(anchor, pattern.nodes)

    def pools(
        self, graph: Graph, name: str, *, exhaustive: bool
    ) -> list[list[Node]]:
        """For each anchor, its candidates in order.

        Args:
            graph: where to look.
            name: nodes with this in their names are candidates, too.
            exhaustive: keep candidates that cannot lead to a match.

        Returns:
            Empty lists if some node of the pattern has no possible partner.

        Cost: O(nodes).
        """
        nodes = self.pattern.nodes
        buckets: Buckets = {
            asked.key: [] for asked in nodes.values() if not asked.wildcard
        }
        key_of = self.pattern.comparison.key
        for node in graph.nodes:
            try:
                bucket = buckets.get(key_of(node))
            except TypeError:  # a target that cannot be hashed
                continue
            if bucket is not None:
                bucket.append(node)
        if not (all(buckets.values()) or name or exhaustive):
            return [[] for _ in self.pattern.anchors]
        pools = []
        for anchor in self.pattern.anchors:
            asked = nodes[anchor]
            if asked.wildcard:
                pools.append(list(graph.nodes))
            elif name:
                named = {node for node in graph.nodes if name in node.name}
                pools.append(sorted(named.union(buckets[asked.key])))
            elif exhaustive:
                pools.append(buckets[asked.key])
            else:
                pools.append(self._by_rarest(anchor, buckets))
        return pools

    def _by_rarest(self, anchor: Node, buckets: Buckets) -> list[Node]:
        """The candidates for an anchor, found from its rarest operand.

        If that is much rarer than the anchor's operation, only nodes that lie
        downstream of it can match.
        """
        nodes = self.pattern.nodes
        candidates = buckets[nodes[anchor].key]
        by_count = [
            (buckets[nodes[r.start].key], r) for r in self.inner[anchor]
        ]
        rare, route = min(
            by_count, key=lambda pair: len(pair[0]), default=(candidates, None)
        )
        if route is None or 4 * len(rare) >= len(candidates):
            return candidates
        return sorted({end for node in rare for end in self._ends(node, route)})

    def joined(
        self, place: int, paired: Mapping[Node, Value], name: str
    ) -> list[Node] | None:
        """The candidates for a further anchor, given what is paired already.

        None if no route leads to it from there.
        """
        route = self.joins[place]
        start = None if route is None else paired[route.start]
        if route is None or not isinstance(start, Node):
            return None
        return self._ends(start, route, name)

    def _ends(self, start: Node, route: Route, name: str = "") -> list[Node]:
        """The nodes at the end of a route that begins at `start`, in order."""
        front: dict[Node, None] = {start: None}
        key_of = self.pattern.comparison.key
        for sought in route.path:
            key = self.pattern.nodes[sought].key
            by_name = bool(name) and sought is route.path[-1]
            front = {
                user: None
                for node in front
                for user in node.users
                if key_of(user) == key or (by_name and name in user.name)
            }
        return sorted(front)


def _join(anchor: Node, reached: Mapping[Node, object]) -> Route | None:
    """A route to `anchor` from a node in `reached`.

    It begins at an operation if possible: an input may have many more users.
    """
    user = upstream(anchor, reached)
    shared = [node for node in user if node in reached]
    if not shared:
        return None
    start = min(shared, key=lambda node: node.op == "placeholder")
    return _route(start, user)


def _route(start: Node, user: Mapping[Node, Node | None]) -> Route:
    """The route from `start` along one user of each node."""
    path = []
    below = user[start]
    while below is not None:
        path.append(below)
        below = user[below]
    return Route(start, tuple(path))


def _inner_routes(
    anchor: Node, nodes: Mapping[Node, PatternNode]
) -> list[Route]:
    """The short routes to `anchor` from operations that are not returned."""
    user = upstream(anchor, ())
    starts = [node for node in user if nodes[node].user_count > 0]
    routes = [_route(start, user) for start in starts[:MAX_ROUTES]]
    return [route for route in routes if len(route.path) <= MAX_ROUTES]
