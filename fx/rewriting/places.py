"""Stage 07, rewriter: where in the graph the nodes of a replacement go.

They must come after everything that the replacement reads and before all that
uses its results.  For a pattern that returns one value, the place before the
value's first user is always right.  A pattern that returns several may have a
user of one value before an input that the other needs.  Such a user is moved
down; if it has an effect, it must not be moved, and the match is left alone.

The place is right before the first user, as late as possible, where torch.fx
puts it too.  With `respect_mutations` the new nodes stay at the end of the
match, and it is asked again whether a write is in the way, because a
replacement may write where the match did not.
"""

from __future__ import annotations

from collections.abc import (
    Callable,
    Collection,
    Container,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import TYPE_CHECKING, NamedTuple

from ..graph import Graph
from ..node import Node, map_arg

if TYPE_CHECKING:
    from .templates import Rewrite


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


def no_place(rewrite: Rewrite) -> str:
    """Why there is no place for the new nodes of a rewrite; "" if there is.

    Cost: O(users of the match).
    """
    for node in _late_users(rewrite):
        if node.is_impure():
            return f"{node} has an effect and comes too early"
    return ""


def find_place(
    rewrite: Rewrite,
    users_of: Callable[[Node], Iterable[Node]],
    dead: Container[Node],
) -> Node:
    """The node before which the new nodes of a rewrite go.

    Users that come too early are moved behind the rewrite's last input.

    Args:
        rewrite: its match's inputs are nodes that are there now.
        users_of: the users of a node that will not be erased.
        dead: the nodes that will be erased.
    """
    if rewrite.stay:
        return max(rewrite.operations).next
    returned = _returned(rewrite)
    if len(returned) > 1:
        cursor = last_input(rewrite)
        for node in _late_users(rewrite, dead):
            cursor.append(node)
            cursor = node
    users = [user for node in computed(rewrite) for user in users_of(node)]
    if not users:
        return max(returned).next
    first = min(users)
    if len(returned) > 1 and first < last_input(rewrite):
        # A user inside of the match will be erased: its place is of no use.
        outside = [node for node in users if node not in rewrite.operations]
        return min(outside, default=max(returned).next)
    return first


def _returned(rewrite: Rewrite) -> Sequence[Node]:
    """The nodes that the match returns."""
    return [n for n in rewrite.match.returning_nodes if isinstance(n, Node)]


def computed(rewrite: Rewrite) -> Iterator[Node]:
    """What the match returns, without inputs that it returns as they are."""
    return (n for n in _returned(rewrite) if n in rewrite.operations)


def last_input(rewrite: Rewrite) -> Node:
    """The last node that a replacement reads; the sentinel if none."""
    inputs: list[Node] = []
    template, values = rewrite.template, rewrite.match.placeholder_nodes
    for placeholder, value in zip(template.placeholders, values, strict=True):
        if placeholder.users:
            map_arg(value, inputs.append)
    graph = next(iter(rewrite.operations)).graph
    return max(inputs, default=next(iter(graph.nodes)).prev)


def _late_users(rewrite: Rewrite, dead: Container[Node] = ()) -> list[Node]:
    """What uses the match's values before all its inputs are computed.

    Includes all that depends on such a user up to there, in order. Empty if
    the match returns one value, because that comes after all its inputs.
    """
    rest = list(_returned(rewrite))
    if len(rest) < 2:
        return []
    last = last_input(rewrite)
    inside = rewrite.operations
    late: set[Node] = set()
    while rest:
        for user in rest.pop().users:
            if user in inside or user in dead or user in late:
                continue
            if user < last:
                late.add(user)
                rest.append(user)
    return sorted(late)
