"""Stage 07, rewriter: whether a write and a read would change their order.

A rewrite computes at one place what the nodes of a match computed at several.
`relu(neg(x))` with `x.add_(1)` between the two must not be fused by a caller
who asked for `respect_mutations`: no edge connects the write with the `relu`,
so only the order of the nodes shows it.  The other way round, a match that
writes itself must not pass over a node that may read what it writes.

The check refuses too much: a write to some other tensor counts as well, and so
does an unknown function.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from ..graph import Graph
from ..node import Node


class Counts(NamedTuple):
    """How many nodes precede a node.

    Attributes:
        calls: those that call something, and so may read memory.
        effects: those of them that are not known to be pure.
    """

    calls: int
    effects: int


def effects_before(graph: Graph) -> dict[Node, Counts]:
    """For each node, how many calls and effects precede it.

    Cost: O(nodes).
    """
    calls = effects = 0
    counts = {}
    for node in graph.nodes:
        counts[node] = Counts(calls, effects)
        calls += node.op.startswith("call")
        effects += has_effect(node)
    return counts


def written_between(
    nodes: Collection[Node],
    before: Mapping[Node, Counts],
    *,
    writes: bool = False,
) -> str:
    """Why some nodes cannot all be computed where the last of them is.

    Args:
        nodes: the operations of a match.
        before: `effects_before` of their graph.
        writes: what replaces the nodes has an effect, even if they have none.

    Returns:
        "" if they can: nothing outside of the match lies between them, or
        neither that nor the match has an effect.
    """
    if not nodes:
        return ""
    first, last = min(nodes), max(nodes)
    effects = before[last].effects - before[first].effects
    calls = before[last].calls - before[first].calls
    for node in nodes:
        effect = has_effect(node)
        writes = writes or effect
        if node is not last:
            effects -= effect
            calls -= node.op.startswith("call")
    if effects:
        return f"a node between {first} and {last} has an effect"
    if writes and calls:
        return (
            f"the match has an effect, and a node between {first} and {last} "
            "may read what it writes"
        )
    return ""


def has_effect(node: Node) -> bool:
    """Whether a call may do more than compute its value."""
    rule = node.graph._dead_code_rule  # noqa: SLF001
    return node.op.startswith("call") and rule.may_have_effect(node)
