"""Stage 08, reinplace: the plan, which decides for every node in order.

What rules ask about is here: which nodes are in which memory and when that is
used next, what a value would be if one of its inputs had other strides, and
which node stands for which by now.  The rules themselves are `reinplace`'s.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from ..graph_module import GraphModule
from ..memory.facts import Facts, facts_of
from ..node import Node, map_arg
from ..usedef.values import Argument, Value
from .aliasing import (
    DisjointSets,
    Storages,
    arguments_of,
    geometry,
    is_item,
    nodes_in,
    propagate,
    tensors_in,
    without_data,
)

__all__ = [
    "COPY",
    "Call",
    "Memory",
    "Plan",
    "Rule",
    "Verdict",
    "peak_bytes",
    "view_arguments",
]


class Verdict(NamedTuple):
    """What became of one node, and by which rule of `reinplace`.

    Attributes:
        node: its name.
        target: what it calls, before.
        rule: "3a" or "3b" if it is done in place, "5" if it is erased; else
            what stopped it: "1a", "1b", "1c", "2", "4" (see `reinplace`), or
            "3b" for an operator without an in-place variant.
        reason: the same in words.
    """

    node: str
    target: str
    rule: str
    reason: str


# -- what is known of memory -------------------------------------------------

COPY: Final[Value] = torch.ops.aten.copy_.default

_LONGEST_CHAIN: Final = 64
"""Views between a result and the scatter operator that takes it."""


@dataclass
class Memory:
    """What is known of the storages of one set.

    Attributes:
        uses: a heap of the places of nodes that read or write it, views
            aside; those that have been passed are taken out.
        last: the last of them.
        owner: the input or attribute that it is of, if any.
        held: why it must never be written, if so.
    """

    uses: list[int] = field(default_factory=list)
    last: int = -1
    owner: str | None = None
    held: str | None = None

    def add_use(self, place: int) -> None:
        """Note a use; places come in order."""
        if self.last != place:
            self.uses.append(place)
            self.last = place

    def claim(self, owner: str) -> None:
        """Note whose memory it is; with two owners, nobody may write it.

        Another call might give two inputs that share nothing.
        """
        if self.owner not in (None, owner):
            self.held = self.held or f"{self.owner} and {owner} share it"
        self.owner = owner

    def absorb(self, other: Memory) -> None:
        """Take over the uses of a memory that is one with this now."""
        if len(other.uses) > len(self.uses):
            self.uses, other.uses = other.uses, self.uses
        for place in other.uses:
            heapq.heappush(self.uses, place)
        other.uses = []
        self.last = max(self.last, other.last)
        self.owner = self.owner or other.owner
        self.held = self.held or other.held


@dataclass
class Call:
    """A call that may be done in place, and what the rules found out.

    Attributes:
        node: the call.
        place: its place in the graph.
        facts: what is known of its operator.
        base: "a", the node whose memory is to be written.
        memory: the name of the set of that memory.
        scatter: the scatter operator that has nothing left to do (2c).
        limit: the place of the `copy_` that overwrites the memory (1b).
        changed: the values that have other strides then (4).
    """

    node: Node
    place: int
    facts: Facts
    base: Node
    memory: int
    scatter: Node | None = None
    limit: int | None = None
    changed: dict[Node, Value] = field(default_factory=dict)


Rule: TypeAlias = "Callable[[Plan, Call], str | None]"
"""Why a call must stay as it is; None if nothing speaks against it."""


class Plan:
    """Decides for every node; the graph stays as it is.

    Attributes:
        nodes: the nodes in order.
        replaced: node -> the node whose value to use instead.
        in_place: the calls to rewrite.
        erased: the nodes that have nothing left to do.
        same: the storages that are one now (those of `storages.sets` only
            may be one).
        done, kept: what to tell.
    """

    def __init__(
        self,
        gm: GraphModule,
        sample_args: tuple[Value, ...],
        rules: Mapping[str, Rule],
    ) -> None:
        """Decide for every node of a graph.

        Args:
            gm: the module.
            sample_args: its inputs.
            rules: by name, in the order in which they are asked.
        """
        if not isinstance(gm, GraphModule):
            raise TypeError(
                f"reinplace rewrites a GraphModule, not {gm!r}: make one with "
                "make_fx(torch.func.functionalize(f))(*sample_args)"
            )
        self.rules = rules
        self.nodes: list[Node] = list(gm.graph.nodes)
        self.places: dict[Node, int] = {
            node: i for i, node in enumerate(self.nodes)
        }
        self.mode: FakeTensorMode
        self.values: dict[Node, Value]
        self.mode, self.values = propagate(gm, sample_args)
        self.storages: Storages = Storages(self.values)
        self.memories: list[Memory] = [
            Memory() for _ in range(len(self.storages.sets))
        ]
        self.same: DisjointSets = DisjointSets(len(self.storages.sets))
        self.replaced: dict[Node, Node] = {}
        self.in_place: dict[Node, Facts] = {}
        self.erased: dict[Node, None] = {}
        self.done: list[Verdict] = []
        self.kept: list[Verdict] = []
        for place, node in enumerate(self.nodes):
            self._note_uses(place, node)
        for place, node in enumerate(self.nodes):
            if node not in self.erased:
                self._decide(place, node)

    def now(self, node: Node) -> Node:
        """The node whose value stands for that of `node`."""
        while node in self.replaced:
            node = self.replaced[node]
        return node

    def memory_of(self, node: Node) -> list[Memory]:
        """The memories that a node's value is in."""
        return [self.memories[name] for name in self.storages.classes(node)]

    # -- before the first decision -----------------------------------------

    def _note_uses(self, place: int, node: Node) -> None:
        """Note what a node uses, owns, and keeps hold of."""
        for arg in dict.fromkeys(arguments_of(node)):
            if not self.storages.is_alias(node, arg):
                for memory in self.memory_of(arg):
                    memory.add_use(place)
        if node.op in ("placeholder", "get_attr"):
            for memory in self.memory_of(node):
                memory.claim(str(node.target))
        held = self._held_by(node)
        for arg, reason in held.items():
            for memory in self.memory_of(arg):
                memory.held = memory.held or reason

    def _held_by(self, node: Node) -> dict[Node, str]:
        """The nodes whose memory must not be touched because of `node`."""
        if node.op in ("placeholder", "get_attr", "output"):
            return {}
        facts = facts_of(node.target)
        if facts is None:
            if is_item(node):
                return {}
            reason = f"no schema tells what {node} does with it"
            return dict.fromkeys([node, *arguments_of(node)], reason)
        if node.target is COPY:
            return {}
        written = [one.of(node.args, node.kwargs) for one in facts.writes]
        reason = f"{node} writes into it: the graph is not functional"
        return dict.fromkeys(nodes_in(written), reason)

    # -- one node ----------------------------------------------------------

    def _decide(self, place: int, node: Node) -> None:
        """Decide whether one node is done in place."""
        if node.op in ("placeholder", "get_attr", "output") or is_item(node):
            return
        facts = facts_of(node.target)
        if facts is None:
            self._tell(self.kept, node, "3b", "it is no operator of ATen")
        elif node.target is COPY:
            self._drop_copy_onto_itself(node)
        elif not facts.views and not facts.writes:
            self._decide_call(place, node, facts)

    def _decide_call(self, place: int, node: Node, facts: Facts) -> None:
        """Ask every rule about a call of a functional operator."""
        if facts.twin is None and facts.view is None:
            self._tell(self.kept, node, "3b", "it has no in-place variant")
            return
        first = node.args[0] if node.args else None
        base = self.now(first) if isinstance(first, Node) else None
        if base is None or len(self.storages.classes(base)) != 1:
            problem = "its first argument is not one tensor, given by position"
            self._tell(self.kept, node, "1a", problem)
            return
        memory = self.storages.classes(base)[0]
        call = Call(node, place, facts, base, memory)
        for name, rule in self.rules.items():
            reason = rule(self, call)
            if reason is not None:
                self._tell(self.kept, node, name, reason)
                return
        self._accept(call)

    def _tell(
        self, where: list[Verdict], node: Node, rule: str, reason: str
    ) -> None:
        """Add a line to the report."""
        where.append(Verdict(node.name, str(node.target), rule, reason))

    def _accept(self, call: Call) -> None:
        """Have a call done in place: (3), and the storages fused (4)."""
        node, base = call.node, call.base
        self.in_place[node] = call.facts
        self._replace(node, base)
        rule = "3b" if call.facts.view is None else "3a"
        self._tell(self.done, node, rule, f"in the memory of {base}")
        if call.scatter is not None:
            old = self.now(call.scatter.input_at(0))
            self.erased[call.scatter] = None
            self._replace(call.scatter, old)
            reason = f"{node} is written in its place"
            self._tell(self.done, call.scatter, "5", reason)
        self.values.update(call.changed)

    def _replace(self, node: Node, base: Node) -> None:
        """Let a node's value be that of `base`, in the same memory."""
        self.replaced[node] = base
        self.values[node] = self.values[base]
        for number in self.storages.of[node]:
            self.same.merge(self.storages.of[base][0], number)
            mine = self.storages.sets.find(self.storages.of[base][0])
            other = self.storages.sets.find(number)
            if mine != other:
                self.storages.sets.merge(mine, other)
                self.memories[mine].absorb(self.memories[other])

    def _drop_copy_onto_itself(self, node: Node) -> None:
        """Erase `copy_(x, b)` if b was computed in x."""
        into, source = node.args[0], node.args[1]
        if isinstance(into, Node) and isinstance(source, Node):
            one, other = self.values[into], self.values[source]
            if self.same_place(one, other):
                self.erased[node] = None
                self.replaced[node] = self.now(into)
                reason = f"the value is in {self.now(into)} already"
                self._tell(self.done, node, "5", reason)

    # -- questions that several rules ask ----------------------------------

    def next_uses(self, memory: Memory, place: int) -> list[int]:
        """The next two places after `place` where a memory is used."""
        found: list[int] = []
        uses = memory.uses
        while uses and len(found) < 2:
            first = heapq.heappop(uses)
            gone = first <= place or self.nodes[first] in self.erased
            if not gone and first not in found:
                found.append(first)
        for one in found:
            heapq.heappush(uses, one)
        return found

    def share_storage(self, one: torch.Tensor, other: torch.Tensor) -> bool:
        """Whether two tensors are in one storage, as decided so far."""
        numbers = self.storages.number_of
        mine, others = numbers(one), numbers(other)
        return (
            mine is not None
            and others is not None
            and self.same.find(mine) == self.same.find(others)
        )

    def same_place(self, one: torch.Tensor, other: torch.Tensor) -> bool:
        """Whether two tensors are the same elements of one storage.

        Offsets can be compared: where two storages became one, all values
        whose offset would differ have been computed again (4).
        """
        return self.share_storage(one, other) and geometry(one) == geometry(
            other
        )

    def compute(self, node: Node, values: dict[Node, Value]) -> Value:
        """The fake value of a node, some of its inputs having other values.

        Raises:
            Whatever the operator does.
        """

        def value_of(arg: Node) -> Value:
            return values[arg] if arg in values else self.values[arg]

        target: Value = node.target
        args: Value = map_arg(node.args, value_of)
        kwargs: Value = map_arg(dict(node.kwargs), value_of)
        with self.mode:
            return target(*args, **kwargs)

    def recompute(self, node: Node, changed: dict[Node, Value]) -> bool:
        """Note in `changed` what a node makes of changed inputs.

        Returns:
            False if it might be more than other strides of the same.
        """
        if node in self.erased:
            return self.now(node) not in changed
        facts = facts_of(node.target)
        if not _is_blind(node, facts):
            return False
        try:
            value = self.compute(node, changed)
        except Exception:  # whatever the operator has against it
            return False
        old, new = tensors_in(self.values[node]), tensors_in(value)
        if [t.size() for t in old] != [t.size() for t in new]:
            return False
        if facts is not None and not self.is_as_shared(
            node, facts, changed, new
        ):
            return False
        if [geometry(t) for t in old] != [geometry(t) for t in new]:
            changed[node] = value
        return True

    def is_as_shared(
        self,
        node: Node,
        facts: Facts,
        changed: dict[Node, Value],
        results: list[torch.Tensor],
    ) -> bool:
        """Whether a view is still one, and a copy still a copy."""
        if facts.views:
            return self.is_possible_view(node, changed, results)
        numbers = map(self.storages.number_of, results)
        is_view = any(number is not None for number in numbers)
        return is_view == self.storages.shares_with_inputs(node)

    def is_possible_view(
        self,
        node: Node,
        changed: dict[Node, Value],
        views: list[torch.Tensor],
    ) -> bool:
        """Whether torch's own kernel, too, makes these views.

        Fake tensors let `view` pass in cases in which it raises: for sizes
        with a 1 in them, the strides beside it are not looked at.
        """

        def bare(arg: Node) -> Value:
            value = changed[arg] if arg in changed else self.values[arg]
            is_tensor = isinstance(value, torch.Tensor)
            return without_data(value) if is_tensor else value

        target: Value = node.target
        args: Value = map_arg(node.args, bare)
        kwargs: Value = map_arg(dict(node.kwargs), bare)
        try:
            made = tensors_in(target(*args, **kwargs))
        except Exception:  # whatever the operator has against it
            return False
        shapes = [geometry(tensor)[:3] for tensor in made]
        return shapes == [geometry(tensor)[:3] for tensor in views]

    def compute_view(self, node: Node, facts: Facts) -> torch.Tensor | None:
        """The part that a scatter operator would write, in place."""
        args, kwargs = view_arguments(node, facts)
        values: Value = map_arg((args, kwargs), self.values.__getitem__)
        try:
            with self.mode:
                view: Value = facts.view
                part: torch.Tensor = view(*values[0], **values[1])
        except Exception:  # whatever the operator has against it
            return None
        return part

    def starts_of(self, call: Call) -> dict[Node, Value]:
        """The nodes that a rewriting replaces, and their values then."""
        starts = {call.node: self.values[call.base]}
        if call.scatter is not None:
            starts[call.scatter] = self.values[call.scatter.input_at(0)]
        return starts

    def through_views(self, node: Node, starts: dict[Node, Value]) -> Value:
        """The value of `node` as a view of one of `starts`, or None.

        Args:
            node: reached from a node of `starts` by views alone, or not.
            starts: nodes and the values they are to have.
        """
        path: list[Node] = []
        while node not in starts:
            source = _viewed_by(node)
            if source is None or len(path) == _LONGEST_CHAIN:
                return None
            path.append(node)
            node = source
        value = starts[node]
        for step in reversed(path):
            try:
                value = self.compute(step, {node: value})
            except Exception:  # whatever the operator has against it
                return None
            node = step
        return value


def _is_blind(node: Node, facts: Facts | None) -> bool:
    """Whether a call sees the elements alone, not how they lie."""
    if facts is None:
        return is_item(node)
    if facts.writes and node.target is not COPY:
        return False
    return not facts.draws and not facts.reads_layout


def _viewed_by(node: Node) -> Node | None:
    """What a view, or an item of a list of views, is a view of."""
    facts = facts_of(node.target)
    if facts is None:
        source = node.args[0] if is_item(node) else None
    else:
        source = (
            facts.views[0].of(node.args, node.kwargs)
            if len(facts.views) == 1
            else None
        )
    return source if isinstance(source, Node) else None


def view_arguments(
    node: Node, facts: Facts
) -> tuple[tuple[Argument, ...], dict[str, Argument]]:
    """What a scatter operator's view takes: all but `src`."""
    kwargs = {key: arg for key, arg in node.kwargs.items() if key != "src"}
    return (node.args[0], *node.args[2:]), kwargs


# -- memory ------------------------------------------------------------------


def peak_bytes(plan: Plan, after: bool) -> int:
    """The bytes alive at once, at most, when values die at their last use."""
    storages = plan.storages
    skipped = plan.erased if after else {}
    births: dict[int, int] = {}
    deaths: dict[int, int] = {}
    for place, node in enumerate(plan.nodes):
        if node in skipped:
            continue
        for holder in (node, *node.all_input_nodes):
            for number in storages.of[holder]:
                one = plan.same.find(number) if after else number
                births.setdefault(
                    one, -1 if node.op in ("placeholder", "get_attr") else place
                )
                deaths[one] = place
    changes = [0] * (len(plan.nodes) + 1)
    for one, birth in births.items():
        if birth >= 0:
            changes[birth] += storages.size[one]
            changes[deaths[one] + 1] -= storages.size[one]
    peak = alive = 0
    for change in changes:
        alive += change
        peak = max(peak, alive)
    return peak
