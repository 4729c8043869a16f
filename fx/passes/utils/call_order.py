"""Passes: which calls must stay in order though no value goes between them.

A pass that moves calls keeps each behind its inputs.  That is not enough where
calls have effects:

    y = x + 1
    y.add_(2)        # no edge to `y * 3`, which reads what it writes
    z = y * 3

What a call does besides computing its value, and who uses the memory that a
call made, is asked of `memory`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

from ...extra.effects.effects import (
    Effect,
    Memory,
    changes_only_itself,
    effect_by_name,
    holds_with_others,
)
from ...graph import Graph
from ...node import Node
from ..tools_common import CALLABLE_NODE_OPS, Pair


def kept_in_order(graph: Graph) -> Iterator[Pair]:
    """Pairs of calls, the earlier one first, that must not change places.

    More pairs follow from these, as the order is transitive, and from the
    inputs of the nodes.

    - A write into memory that a call of the graph made stays in its place
      among the calls that use that memory, if all of them are known.  So two
      branches of a network that work in place can still be taken apart.  (If a
      user's function has seen the memory, what it returned may lie there.)
    - A random draw, and a module of torch.nn that changes a state which it
      alone has, stay in order with all other effects.
    - Any other effect stays where it is among all calls, and so does a call
      of which nothing is known.  The object of a method is taken for a tensor.

    Args:
        graph: the graph; its calls are looked at and not changed.

    Cost: O(nodes + uses).
    """
    calls = [node for node in graph.nodes if node.op.startswith("call")]
    effects = {node: effect_by_name(node) for node in calls}
    impure = [node for node in calls if effects[node].kind != "pure"]
    if not impure:
        return
    memory = Memory(graph.nodes)
    local = {node for node in impure if memory.is_made_here(node)}
    for users in memory.uses():
        mine = [node for node in users if node in effects]
        yield from around(mine, local.intersection(mine))
    others = {node: effects[node] for node in impure if node not in local}
    yield from pairwise(others)
    yield from around(calls, _fences(graph, others))


def _fences(graph: Graph, others: Mapping[Node, Effect]) -> set[Node]:
    """Those of some calls with an effect that calls without one may notice.

    They do not notice draws, nor what a module of torch.nn does to a state
    that it alone has.  A batch norm in training is noticed if the graph fetches
    its `running_mean`, or calls another module that has the same tensor.
    """
    fences = {node for node in others if not others[node].only_draws}
    modules = {node for node in fences if changes_only_itself(node)}
    return fences - modules | holds_with_others(modules, graph.nodes)


def around(calls: Sequence[Node], fences: Collection[Node]) -> Iterator[Pair]:
    """Pairs that keep some of the calls in their place among all.

    Each call is paired with the fences next to it, and the rest follows.

    Args:
        calls: all, in order.
        fences: those that stay; no other call comes to their other side.

    Cost: O(calls), and no more than two pairs for each.
    """
    fence: Node | None = None
    between: list[Node] = []
    for node in calls if fences else ():
        if fence is not None:
            yield fence, node
        if node in fences:
            yield from ((before, node) for before in between)
            fence, between = node, []
        else:
            between.append(node)


def may_write_attributes(graph: Graph) -> bool:
    """Whether some call may write into what the graph fetches.

    Cost: O(nodes + uses).
    """
    memory = Memory(graph.nodes)
    others = {
        node: effect
        for node in graph.nodes
        if node.op in CALLABLE_NODE_OPS
        and (effect := effect_by_name(node)).kind != "pure"
        and not memory.is_made_here(node)
    }
    return bool(_fences(graph, others))
