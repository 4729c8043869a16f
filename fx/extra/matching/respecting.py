"""Extra: whether a rewrite keeps what a program writes and reads.

Two things may change. A node of a match may move across a write or a read, as
the replacement is computed in one place. And a write may be gone, or be new:

    y.mul_(y.sigmoid())      replaced by    silu(y)
    return y                 would be another value

What is written into memory that nobody uses afterwards, but through what the
match returns, need not be written. All else has to be written by both, which is
known where both write into the same value, or are the same call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from typing import NamedTuple, TypeAlias

from ...graph import Graph
from ...node import Node
from ...passes.utils.matcher_utils import Search
from ...rewriting.patterns import equal_constants
from ...rewriting.places import computed, last_input
from ...rewriting.templates import Rewrite, Template
from ...use_def.dotted_path import look_up
from ...use_def.values import AnyValue, Argument
from ..effects.effects import Effect, Memory, classify, effect_of_module, owned


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
    return node.op.startswith("call") and classify(node).kind != "pure"


def moves_across(search: Search, inside: Collection[Node]) -> str:
    """What `written_between` says of a match that a search has found."""
    if not search.before:
        search.before = effects_before(search.graph)
    return written_between(inside, search.before)


class EffectfulCall(NamedTuple):
    """A call that may do more than compute its value.

    Attributes:
        node: the call.
        effect: what it does.
        called: the module or function that it calls.
    """

    node: Node
    effect: Effect
    called: object

    @property
    def written(self) -> Argument:
        """What it writes into, if it is known to do no more."""
        target, node = self.effect.target, self.node
        return target.of(node.args, node.kwargs) if target else None


Traced: TypeAlias = Callable[[], Memory]
"""Gives the memory of the graph, traced when it is first asked for."""


def respect(graph: Graph, rewrites: Sequence[Rewrite]) -> None:
    """Keep new nodes where matches end, and refuse rewrites.

    Refused are those that would change what is written, or its order.

    Args:
        graph: the graph of the matches.
        rewrites: those that are refused already are left as they are.

    Cost: O(nodes + uses + size of the replacements).
    """
    before = effects_before(graph)
    memory = cache(lambda: Memory(graph.nodes))
    made = [_effects_of(rewrite.template, graph) for rewrite in rewrites]
    # It may be that of another match, which lies between the nodes of one.
    writes = any(made)
    for rewrite, theirs in zip(rewrites, made, strict=True):
        if not rewrite.refused:
            rewrite.refused = _moved(rewrite, before, writes=writes) or _lost(
                rewrite, [*_impure(theirs)], memory
            )


def _effects_of(template: Template, graph: Graph) -> list[EffectfulCall]:
    """The calls of a replacement that are not known to be pure."""
    calls = []
    for node in template.body:
        called: AnyValue = node.target
        if node.op == "call_module":
            path = str(node.target)
            called = (
                template.needed[path]
                if path in template.needed
                else look_up(
                    graph.owning_module, template.renamed.get(path, path)
                )
            )
            effect = effect_of_module(called)
        else:
            effect = classify(node)
        if effect.kind != "pure":
            calls.append(EffectfulCall(node, effect, called))
    return calls


def _moved(
    rewrite: Rewrite, before: Mapping[Node, Counts], *, writes: bool
) -> str:
    """Why the new nodes cannot be at the end of the match; "" if they can."""
    end = max(rewrite.operations)
    users = [user for node in computed(rewrite) for user in node.users]
    rewrite.stay = end < min(users, default=end.next)
    if end < last_input(rewrite):
        return f"an input of the replacement comes after {end}"
    return written_between(rewrite.operations, before, writes=writes)


def _impure(calls: Sequence[EffectfulCall]) -> list[EffectfulCall]:
    """Those that are known to have an effect."""
    return [call for call in calls if call.effect.kind == "impure"]


def _lost(rewrite: Rewrite, theirs: list[EffectfulCall], memory: Traced) -> str:
    """Why a rewrite would change what is written; "" if it would not.

    Args:
        rewrite: the rewrite.
        theirs: the calls of its replacement that have an effect.
        memory: that of the graph.
    """
    inside = rewrite.operations
    ours = _impure(
        [
            EffectfulCall(
                node,
                classify(node),
                owned(node) if node.op == "call_module" else node.target,
            )
            for node in inside
            if node.op.startswith("call")
        ]
    )
    if not ours and not theirs:
        return ""
    twins = _Twins(rewrite)
    rest = [*theirs]
    for call in ours:
        same = [other for other in rest if twins.alike(other, call)]
        if call.effect.target is None:
            if not same:
                return f"{call.node} has an effect: {call.effect.reason}"
            rest.remove(same[0])  # what draws twice has to draw twice
        elif not same:
            seen = memory().seen_besides(call.written, inside)
            if seen:
                return f"what {call.node} writes would be lost: {seen}"
    added = [one for one in theirs if one.effect.target is not None]
    return _added(
        [one for one in added if not any(twins.alike(one, o) for o in ours)],
        twins,
        memory,
    )


def _added(writes: list[EffectfulCall], twins: _Twins, memory: Traced) -> str:
    """Why a replacement must not write what the match does not write."""
    for call in writes:
        for value in twins.inputs_in(call):
            seen = memory().seen_besides(value, twins.inside)
            if seen:
                return f"the replacement writes into {value}: {seen}"
    return ""


class _Twins:
    """Finds the nodes of a replacement that compute what a match computes."""

    def __init__(self, rewrite: Rewrite) -> None:
        """Pair the inputs."""
        template = rewrite.template
        self.template = template
        self.inside = rewrite.operations
        self.inputs: dict[Node, AnyValue] = dict(
            zip(
                template.placeholders,
                rewrite.match.placeholder_nodes,
                strict=True,
            )
        )
        self.known: dict[tuple[Node, Node], bool] = {}

    def alike(self, theirs: EffectfulCall, ours: EffectfulCall) -> bool:
        """Whether two calls are known to have the same effect.

        Those that do no more than write have it if they write into the same
        value, and a module if it is the same module.
        """
        written = [call.effect.target is not None for call in (theirs, ours)]
        if all(written):
            return self.same(theirs.written, ours.written)
        if any(written):
            return False
        is_module = theirs.node.op == "call_module"
        if is_module and theirs.called is ours.called:
            return True
        return self.same(theirs.node, ours.node)

    def same(self, theirs: Argument, ours: Argument) -> bool:
        """Whether two arguments are known to be the same value."""
        if not isinstance(theirs, Node) or not isinstance(ours, Node):
            return bool(equal_constants(theirs, ours))
        if theirs in self.inputs:
            return self.inputs[theirs] is ours
        if (theirs, ours) not in self.known:
            self.known[theirs, ours] = self._computed_alike(theirs, ours)
        return self.known[theirs, ours]

    def _computed_alike(self, theirs: Node, ours: Node) -> bool:
        """Whether two nodes are the same call of the same values."""
        if theirs.op != ours.op or ours not in self.inside:
            return False
        if theirs.op == "get_attr":
            path = str(theirs.target)
            renamed = self.template.renamed.get(path, path)
            return path not in self.template.needed and renamed == ours.target
        return (
            theirs.op in ("call_function", "call_method")
            and theirs.target == ours.target
            and len(theirs.args) == len(ours.args)
            and [*theirs.kwargs] == [*ours.kwargs]
            and all(map(self.same, theirs.args, ours.args))
            and all(
                map(self.same, theirs.kwargs.values(), ours.kwargs.values())
            )
        )

    def inputs_in(self, call: EffectfulCall) -> list[AnyValue]:
        """What a call of the replacement may write into, of its inputs."""
        template = self.template
        memory = Memory(
            [*template.placeholders, *template.body], template.placeholders
        )
        makers = memory.makers(call.node)
        if makers is None:
            return [*self.inputs.values()]
        return [self.inputs[one] for one in makers if one in self.inputs]
