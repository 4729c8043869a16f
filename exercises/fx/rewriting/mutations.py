"""Stage 07, rewriter: whether something writes to a tensor amid a match.

`relu(neg(x))` with `x.add_(1)` between the two must not be fused by a caller
who asked for `respect_mutations`: no edge connects the write with the `relu`,
so only the order of the nodes shows it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..graph import Graph
from ..node import Node


def effects_before(graph: Graph) -> dict[Node, int]:
    """For each node, how many nodes before it have an effect.

    Cost: O(nodes).
    """
    count = 0
    counts = {}
    for node in graph.nodes:
        counts[node] = count
        count += _has_effect(node)
    return counts


def written_between(nodes: set[Node], effects: Mapping[Node, int]) -> str:
    """Which effect lies between some nodes; "" if there is none.

    Args:
        nodes: the operations of a match.
        effects: `effects_before` of their graph.
    """
    if not nodes:
        return ""
    first, last = min(nodes), max(nodes)
    own = sum(node is not last and _has_effect(node) for node in nodes)
    if effects[last] - effects[first] > own:
        return f"a node between {first} and {last} has an effect"
    return ""


def _has_effect(node: Node) -> bool:
    """Whether a call is known to do more than compute its value."""
    return node.op.startswith("call") and node.is_impure()
