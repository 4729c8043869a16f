"""Stage 08, reinplace: aliases and strides of a graph after a planned rewrite.

Whether a call may write into its first argument depends on all later nodes,
and on what was decided about earlier ones.  So the graph stays as it is until
all calls are decided, and a `Simulation` knows what the rewritten graph will
be like, as decided so far: which nodes are in which memory, which later nodes
use that memory, and which node's value stands for which other one's.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import torch

from ..graph_module import GraphModule
from ..node import Node
from ..schemas.facts import OperatorInfo, facts_of
from ..torch_private.fake_tensors import FakeTensorMode
from ..use_def.values import AnyValue, Args
from .aliasing import (
    DisjointSets,
    Storages,
    geometry,
    is_item,
    nodes_in,
    propagate,
    tensors_in,
)


@dataclass(frozen=True)
class ReinplaceReport:
    """What `reinplace` does to a graph, and what it leaves.

    Attributes:
        done: the nodes that are done in place or erased, in order.
        kept: the other calls, except for views and writes, with the rule that
            stopped each.
        peak_before: the most bytes that are alive at once, without the inputs
            and the module's own tensors.
        peak_after: the same for the rewritten graph.
    """

    done: tuple[Verdict, ...]
    kept: tuple[Verdict, ...]
    peak_before: int
    peak_after: int

    def __str__(self) -> str:
        lines = [
            f"{len(self.done)} of {len(self.done) + len(self.kept)} calls in "
            f"place or erased; peak {self.peak_before:,} -> "
            f"{self.peak_after:,} bytes"
        ]
        for sign, verdicts in (("+", self.done), ("-", self.kept)):
            lines += [
                f"{sign} {v.node:24} {v.target:32} ({v.rule}) {v.reason}"
                for v in verdicts
            ]
        return "\n".join(lines)


def report_on(sim: Simulation) -> ReinplaceReport:
    """The report on a simulation in which all calls are decided.

    Storages are counted and not tensors, so a view costs nothing.  A storage is
    born where it is allocated and dies after the last node that holds a value
    in it, as in the generated code.
    """
    return ReinplaceReport(
        tuple(sim.done),
        tuple(sim.kept),
        _peak_bytes(sim, after=False),
        _peak_bytes(sim, after=True),
    )


def _peak_bytes(sim: Simulation, after: bool) -> int:
    """The most bytes that are alive at once, if values die at their last use.

    Args:
        sim: the simulation.
        after: whether to count for the rewritten graph.
    """
    births: dict[int, int] = {}
    deaths: dict[int, int] = {}
    for place, node in enumerate(sim.nodes):
        if after and node in sim.erased:
            continue
        is_given = node.op in INPUTS
        for holder in (node, *node.all_input_nodes):
            for number in sim.storages.of[holder]:
                storage = sim.fused.find(number) if after else number
                births.setdefault(storage, -1 if is_given else place)
                deaths[storage] = place
    changes = [0] * (len(sim.nodes) + 1)
    for storage, birth in births.items():
        if birth >= 0:
            changes[birth] += sim.storages.all[storage].nbytes()
            changes[deaths[storage] + 1] -= sim.storages.all[storage].nbytes()
    return max(itertools.accumulate(changes))


INPUTS: Final = ("placeholder", "get_attr")
"""Opcodes of nodes whose memory others may have, too."""

COPY: Final[AnyValue] = torch.ops.aten.copy_.default


class Verdict(NamedTuple):
    """What was decided about one node, and by which rule of `reinplace`.

    Attributes:
        node: its name.
        target: what it calls before the graph is rewritten.
        rule: "3a" or "3b" if it is done in place, "5" if it is erased; else
            what stopped it: "1a", "1b", "1c", "2", "4" (see `reinplace`), or
            "3b" for an operator without an in-place variant.
        reason: the same in words.
    """

    node: str
    target: str
    rule: str
    reason: str


class NotInPlace(Exception):
    """A call must stay as it is: `NotInPlace(rule, reason)`.

    `rule` is the number of a rule of `reinplace`; `reason` says it in words.
    """


@dataclass
class AliasSet:
    """What is known of the storages of one alias set.

    Attributes:
        uses: a heap of the places of the nodes that read or write it. Views
            do neither. Places before the current one have been taken out.
        last: the last of these places.
        owner: the input or attribute whose memory it is, if any.
        blocked: why no call may write it at all, if so.
    """

    uses: list[int] = field(default_factory=list)
    last: int = -1
    owner: str | None = None
    blocked: str | None = None

    def add_use(self, place: int) -> None:
        """Note a use.  The places must come in order."""
        if self.last != place:
            self.uses.append(place)
            self.last = place

    def claim(self, owner: str) -> None:
        """Note an owner.  If there are two, no call may write the memory.

        With other inputs, the two might not share storage, and then a write
        through one would not change the other.
        """
        if self.owner not in (None, owner):
            self.block(f"{self.owner} and {owner} share it")
        self.owner = owner

    def block(self, reason: str) -> None:
        """Forbid all writes; the first reason is kept."""
        self.blocked = self.blocked or reason

    def merge(self, other: AliasSet) -> None:
        """Take over the uses of a memory whose alias set joins this one."""
        if len(other.uses) > len(self.uses):
            self.uses, other.uses = other.uses, self.uses
        for place in other.uses:
            heapq.heappush(self.uses, place)
        other.uses = []
        self.last = max(self.last, other.last)
        self.owner = self.owner or other.owner
        self.blocked = self.blocked or other.blocked


class Site(NamedTuple):
    """A call that may be done in place.

    Attributes:
        node: the call.
        place: its index in the graph.
        facts: what is known of its operator.
        base: "a", the node whose memory the call would write.
        memory: the alias set of that memory, by its representative.
    """

    node: Node
    place: int
    facts: OperatorInfo
    base: Node
    memory: int


class Simulation:
    """The graph that `reinplace` will make, as decided so far.

    Attributes:
        nodes: the nodes of the graph in order.
        places: node -> its index in `nodes`.
        mode: the mode of the fake tensors.
        values: node -> its fake value.
        storages: the storages and their alias sets.
        memories: what is known of each alias set, by its representative.
        fused: the storages that certainly will be the same; those of one set
            of `storages.sets` only may be.
        replaced: node -> the node whose value stands for its value.
        in_place: the calls that are done in place.
        erased: the nodes that are erased.
        done: the verdicts on what is done in place or erased.
        kept: the verdicts on the other calls.
        hides_input: whether an input or attribute has hidden memory.
    """

    def __init__(self, gm: GraphModule, sample_args: Args) -> None:
        """Begin with the graph as it is, and note all uses of memory.

        Args:
            gm: the module.
            sample_args: its inputs.

        Raises:
            As `propagate` does.

        Cost: O(nodes + arguments).
        """
        self.nodes: list[Node] = list(gm.graph.nodes)
        self.places: dict[Node, int] = {
            node: i for i, node in enumerate(self.nodes)
        }
        self.mode: FakeTensorMode
        self.values: dict[Node, AnyValue]
        self.mode, self.values = propagate(gm, sample_args)
        self.storages: Storages = Storages(self.values)
        count = len(self.storages.all)
        self.memories: list[AliasSet] = [AliasSet() for _ in range(count)]
        self.fused: DisjointSets = DisjointSets(count)
        self.replaced: dict[Node, Node] = {}
        self.in_place: dict[Node, None] = {}
        self.erased: dict[Node, None] = {}
        self.done: list[Verdict] = []
        self.kept: list[Verdict] = []
        self.hides_input: bool = any(
            node.op in INPUTS for node in self.storages.hidden
        )
        for place, node in enumerate(self.nodes):
            self._note_uses(place, node)

    def _note_uses(self, place: int, node: Node) -> None:
        """Note which memory a node uses, owns, and forbids to write."""
        for arg in node.all_input_nodes:
            if not self.storages.is_alias(node, arg):
                for memory in self.memories_of(arg):
                    memory.add_use(place)
        if node.op in INPUTS:
            for memory in self.memories_of(node):
                memory.claim(str(node.target))
                if self.hides_input:
                    memory.block("an input with hidden memory may share it")
        elif node.op != "output" and node.target is not COPY:
            self._block(node)

    def _block(self, node: Node) -> None:
        """Forbid writes to memory that a call handles in its own way."""
        facts = facts_of(node.target)
        around = [node, *node.all_input_nodes]
        if not self.storages.hidden.isdisjoint(around):
            blocked = around
            reason = f"{node} takes or returns hidden memory, which may be it"
        elif any(t.requires_grad for t in tensors_in(self.values[node])):
            blocked = around
            reason = f"autograd may need it for {node}: call under no_grad()"
        elif facts is not None:
            given = [p.of(node.args, node.kwargs) for p in facts.writes]
            blocked = nodes_in(given)
            reason = f"{node} writes into it: the graph is not functional"
        elif is_item(node):
            return
        else:
            blocked = around
            reason = f"no schema tells what {node} does with it"
        for holder in blocked:
            for memory in self.memories_of(holder):
                memory.block(reason)

    # -- questions -----------------------------------------------------------

    def replacement(self, node: Node) -> Node:
        """The node whose value stands for that of `node`; perhaps itself."""
        while node in self.replaced:
            node = self.replaced[node]
        return node

    def memories_of(self, node: Node) -> list[AliasSet]:
        """The memories that a node's value is in."""
        return [self.memories[n] for n in self.storages.alias_sets(node)]

    def is_returned(self, node: Node) -> bool:
        """Whether the output uses the memory of a node's value, or may.

        What shares a memory unseen, such as a sparse tensor, may be returned.
        """
        last = len(self.nodes) - 1
        memories = self.memories_of(node)
        return any(memory.last == last or memory.blocked for memory in memories)

    def next_uses(self, memory: AliasSet, place: int) -> list[int]:
        """The next two places after `place` where a memory is used."""
        places: list[int] = []
        uses = memory.uses
        while uses and len(places) < 2:
            first = heapq.heappop(uses)
            gone = first <= place or self.nodes[first] in self.erased
            if not gone and first not in places:
                places.append(first)
        for use in places:
            heapq.heappush(uses, use)
        return places

    def candidate(self, place: int, node: Node) -> Site | None:
        """The call that may be done in place, if a node is one.

        Returns:
            None for inputs, outputs, views and writes.

        Raises:
            NotInPlace: the operator has no in-place variant, or its first
                argument is not a tensor.
        """
        if node.op in (*INPUTS, "output") or is_item(node):
            return None
        facts = facts_of(node.target)
        if facts is None:
            raise NotInPlace("3b", "it is not an operator of ATen")
        if facts.views or facts.writes:
            return None
        if facts.inplace_variant is None and facts.view is None:
            raise NotInPlace("3b", "it has no in-place variant")
        first = node.args[0] if node.args else None
        if isinstance(first, Node):
            base = self.replacement(first)
            sets = self.storages.alias_sets(base)
            if len(sets) == 1:
                return Site(node, place, facts, base, sets[0])
        raise NotInPlace(
            "1a", "its first positional argument is not one tensor"
        )

    def share_storage(self, one: torch.Tensor, other: torch.Tensor) -> bool:
        """Whether two tensors certainly share storage, as decided so far."""
        mine, others = map(self.storages.number_of, (one, other))
        if mine is None or others is None:
            return False
        return self.fused.find(mine) == self.fused.find(others)

    def same_place(self, one: torch.Tensor, other: torch.Tensor) -> bool:
        """Whether two tensors are the same elements of the same storage.

        Their offsets can be compared even if two storages became one, because
        the values whose offset would differ have been computed again (4).
        """
        return self.share_storage(one, other) and geometry(one) == geometry(
            other
        )

    # -- decisions -----------------------------------------------------------

    def moved(self, call: Site, scatter: Node | None) -> dict[Node, AnyValue]:
        """The nodes whose value a rewrite moves -> the value in its new place.

        Args:
            call: its result would be in the memory of "a".
            scatter: the value of this one would be in the memory of the
                scatter's first argument.
        """
        moved = {call.node: self.values[call.base]}
        if scatter is not None:
            moved[scatter] = self.values[scatter.input_at(0)]
        return moved

    def do_in_place(
        self, call: Site, scatter: Node | None, changed: dict[Node, AnyValue]
    ) -> None:
        """Decide that a call is done in place.

        Args:
            call: the call.
            scatter: the scatter operator that is redundant then (2c).
            changed: the values that have other strides then (4).
        """
        raise NotImplementedError("stage 08: Simulation.do_in_place")

    def drop_copy_onto_itself(self, node: Node) -> None:
        """Decide that `copy_(x, b)` is erased, if b was computed in x."""
        into, source = (*node.args, None, None)[:2]
        if isinstance(into, Node) and isinstance(source, Node):
            written, value = self.values[into], self.values[source]
            if self.same_place(written, value):
                x = self.replacement(into)
                self.erased[node] = None
                self.replaced[node] = x
                self._tell_done(node, "5", f"the value is in {x} already")

    def keep(self, node: Node, kept: NotInPlace) -> None:
        """Decide that a call stays as it is."""
        self.kept.append(Verdict(node.name, str(node.target), *kept.args))

    def _tell_done(self, node: Node, rule: str, reason: str) -> None:
        """Add a line to the report."""
        self.done.append(Verdict(node.name, str(node.target), rule, reason))

    def _replace(self, node: Node, base: Node) -> None:
        """Let the value of `base` stand for that of `node`."""
        self.replaced[node] = base
        self.values[node] = self.values[base]
        sets, ours = self.storages.sets, self.storages.of[base][0]
        for number in self.storages.of[node]:
            self.fused.merge(ours, number)
            mine, other = sets.find(ours), sets.find(number)
            if mine != other:
                sets.merge(mine, other)
                self.memories[mine].merge(self.memories[other])
