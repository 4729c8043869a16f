"""Random graphs and patterns, and a matcher that simply tries everything."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import torch
from hypothesis import strategies as st

from fx.graph import Graph
from fx.node import Node

UNARY = (torch.relu, torch.neg)
BINARY = (torch.add, torch.mul)

Recipe = list[tuple[int, int, int]]
"""For each operation: which it is, and which earlier values it reads."""

_operation = st.tuples(
    st.integers(0, 3), st.integers(0, 30), st.integers(0, 30)
)
recipes = st.lists(_operation, min_size=1, max_size=9)
small_recipes = st.lists(_operation, min_size=1, max_size=3)


def build(recipe: Recipe, inputs: int = 2) -> Graph:
    """The graph of a recipe; it returns all values that nobody reads."""
    graph = Graph()
    values = [graph.placeholder(f"x{i}") for i in range(inputs)]
    for op, one, other in recipe:
        # Recent values are the likelier inputs: that makes chains.
        a = values[-1 - one % min(len(values), 4)]
        b = values[-1 - other % len(values)]
        if op < 2:
            values.append(graph.call_function(UNARY[op], (a,)))
        else:
            values.append(graph.call_function(BINARY[op - 2], (a, b)))
    loose = [value for value in values[inputs:] if not value.users]
    graph.output(tuple(loose))
    return graph


Pairs = dict[Node, Node]
"""Node of the pattern -> node of the graph."""


def _pair(sought: object, found: object, pairs: Pairs) -> bool:
    """Pair two arguments and all that they need; plain recursion."""
    if not isinstance(sought, Node) or not isinstance(found, Node):
        return sought == found
    if sought in pairs:
        return pairs[sought] is found
    if found in pairs.values():
        return False
    if sought.op != "placeholder" and (
        (sought.op, sought.target) != (found.op, found.target)
        or len(sought.args) != len(found.args)
    ):
        return False
    pairs[sought] = found
    if sought.op == "placeholder":
        return True
    return all(
        _pair(one, other, pairs)
        for one, other in zip(sought.args, found.args, strict=True)
    )


def _below(nodes: Sequence[Node]) -> set[Node]:
    """All that depends on some nodes, themselves not counted."""
    seen: set[Node] = set()
    rest = list(nodes)
    while rest:
        for user in rest.pop().users:
            if user not in seen:
                seen.add(user)
                rest.append(user)
    return seen


def _can_go(pairs: Pairs, returned: Sequence[Node]) -> bool:
    """Whether no value that goes is needed, and no way leads back in."""
    inside = {n for p, n in pairs.items() if p.op != "placeholder"}
    kept = {pairs[node] for node in returned}
    leaks = [n for n in inside - kept if not inside.issuperset(n.users)]
    outside = [u for n in inside for u in n.users if u not in inside]
    return not leaks and not inside & _below(outside)


def all_matches(pattern: Graph, graph: Graph) -> Iterator[Pairs]:
    """Each way to find the pattern in the graph, overlaps included."""
    returned = pattern.output_node().all_input_nodes
    anchors = [node for node in returned if len(node.users) == 1]
    for chosen in itertools.product(list(graph.nodes), repeat=len(anchors)):
        pairs: Pairs = {}
        fits = all(
            _pair(one, other, pairs)
            for one, other in zip(anchors, chosen, strict=True)
        )
        if fits and _can_go(pairs, returned):
            yield pairs


def apart(matches: Iterator[Pairs]) -> Iterator[Pairs]:
    """The matches that share no operation with an earlier one."""
    taken: set[Node] = set()
    for pairs in matches:
        inside = {n for p, n in pairs.items() if p.op != "placeholder"}
        if taken.isdisjoint(inside):
            taken |= inside
            yield pairs
