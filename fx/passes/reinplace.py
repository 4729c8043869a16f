"""Stage 08, reinplace: compute in memory that nobody needs any more.

    b = aten.add(a, 1)      becomes      aten.add_(a, 1), and b is a

where no one can tell the difference.  That is a statement about all that
happens later, so first everything is decided (`_Plan`), on fake values and
without touching the graph, and then the graph is rewritten.  If anything is
wrong with the graph or the inputs, nothing has been changed.

Soundness.  Writing b into a's memory is seen by whoever reads that memory
afterwards and expects a.  Every value knows the storages it may be in
(`aliasing`); for each of them the plan has the later reads in order.  A node
is rewritten only if there are none, or one that the rewriting makes vanish.
Then the two memories are one, and have the later reads of both.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

import torch

from ..arguments import Argument, Value, map_arg
from ..graph_module import GraphModule
from ..node import Node
from .aliasing import (
    DisjointSets,
    OperatorFacts,
    Storages,
    arguments_of,
    facts_of,
    geometry,
    is_item,
    nodes_in,
    propagate,
    tensors_in,
)

__all__ = ["ReinplaceReport", "Verdict", "reinplace", "reinplace_report"]


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


@dataclass(frozen=True)
class ReinplaceReport:
    """What `reinplace` does to a graph, and what it leaves.

    Attributes:
        done: the nodes that are done in place or erased, in order.
        kept: the other calls, views and writes aside, with what stopped them.
        peak_before: bytes that are alive at once, at most; without the
            inputs and the module's own tensors, which are there anyway.
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


def reinplace(gm: GraphModule, *sample_args: Value) -> GraphModule:
    """Turn operator calls into in-place ones where no one can see it.

    For each call `b = foo(a, args...)` of an operator with an in-place
    variant, in order:

    (1) Look at "a" and "args...":

        (1a) The result must have the size, dtype and device of "a", and no
        two elements of "a" may share memory (`expand`). Autograd must not be
        following "a", as it may need its old value.

        (1b) "a" must not be, or alias, an input or a tensor of the module.
        Except: an input that is overwritten later by `copy_`, as
        functionalization does it, is free memory until then.

        (1c) "a" must not share memory with another argument, nor stand among
        them again.

    (2) "a" and its aliases must not be used later: not at all, (a) but by
    views that themselves are not, (c) or exactly once, by the scatter
    operator that puts b back where the view "a" came from; that scatter has
    then nothing left to do. (b, the repeated argument, is seen by (1c).)

    (3) Rewrite: (3a) `{view}_scatter(a, b, args...)` becomes
    `{view}(a, args...).copy_(b)`; (3b) any other `foo` becomes `foo_`.

    (4) Later uses of the result become uses of "a", and the storages of both
    are one from now on. If "a" has other strides than the result had, no
    later node may notice.

    (5) Erase the scatter operators that have nothing left to do, and the
    `copy_` of an input onto itself.

    Args:
        gm: a functional graph of ATen operators, such as `make_fx` gives for
            `torch.func.functionalize(f)`. Other calls are left as they are,
            and so is the memory that they see.
        *sample_args: inputs as `gm` will be called with: of such sizes,
            strides and dtypes, and sharing memory where those will.

    Returns:
        `gm`, rewritten and recompiled. `node.meta["fake_result"]` has each
        node's value without data.

    Raises:
        TypeError: `gm` is no GraphModule.
        RuntimeError: an input is missing or has no place.
        Whatever an operator raises for the sample inputs, with the node
        added. The graph is then as it was.

    Cost: O((nodes + arguments) log nodes), and running all on fake tensors.

    torch.fx: passes/reinplace.py, reinplace
    """
    return _rewrite(gm, _Plan(gm, sample_args))


def reinplace_report(gm: GraphModule, *sample_args: Value) -> ReinplaceReport:
    """Say what `reinplace` would do, and for the rest what stops it.

    Args:
        gm: as for `reinplace`; stays as it is.
        *sample_args: as for `reinplace`.

    Raises:
        As `reinplace` does.

    Cost: as `reinplace`.
    """
    plan = _Plan(gm, sample_args)
    return ReinplaceReport(
        tuple(plan.done),
        tuple(plan.kept),
        _peak_bytes(plan, after=False),
        _peak_bytes(plan, after=True),
    )


# -- what is known of memory -------------------------------------------------

_COPY: Final[Value] = torch.ops.aten.copy_.default

_MOST_LOOKED_AT: Final = 100
"""Nodes that are computed again to see who notices other strides."""

_LONGEST_CHAIN: Final = 64
"""Views between a result and the scatter operator that takes it."""


@dataclass
class _Memory:
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

    def absorb(self, other: _Memory) -> None:
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
class _Call:
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
    facts: OperatorFacts
    base: Node
    memory: int
    scatter: Node | None = None
    limit: int | None = None
    changed: dict[Node, Value] = field(default_factory=dict)


_Rule: TypeAlias = "Callable[[_Plan, _Call], str | None]"
"""Why a call must stay as it is; None if nothing speaks against it."""


class _Plan:
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

    def __init__(self, gm: GraphModule, sample_args: tuple[Value, ...]) -> None:
        if not isinstance(gm, GraphModule):
            raise TypeError(
                f"reinplace rewrites a GraphModule, not {gm!r}: make one with "
                "make_fx(torch.func.functionalize(f))(*sample_args)"
            )
        self.nodes = list(gm.graph.nodes)
        self.places = {node: i for i, node in enumerate(self.nodes)}
        self.mode, self.values = propagate(gm, sample_args)
        self.storages = Storages(self.values)
        self.memories = [_Memory() for _ in range(len(self.storages.sets))]
        self.same = DisjointSets(len(self.storages.sets))
        self.replaced: dict[Node, Node] = {}
        self.in_place: dict[Node, OperatorFacts] = {}
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

    def memory_of(self, node: Node) -> list[_Memory]:
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
                memory.owner = memory.owner or node.name
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
        if node.target is _COPY:
            return {}
        written = [one.of(node) for one in facts.writes]
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
        elif node.target is _COPY:
            self._drop_copy_onto_itself(node)
        elif not facts.views and not facts.writes:
            self._decide_call(place, node, facts)

    def _decide_call(
        self, place: int, node: Node, facts: OperatorFacts
    ) -> None:
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
        call = _Call(node, place, facts, base, memory)
        for name, rule in _RULES.items():
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

    def _accept(self, call: _Call) -> None:
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

    def next_uses(self, memory: _Memory, place: int) -> list[int]:
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
        if facts is None and not is_item(node):
            return False
        if facts is not None and not _is_blind(node, facts):
            return False
        try:
            value = self.compute(node, changed)
        except Exception:  # whatever the operator has against it
            return False
        old, new = tensors_in(self.values[node]), tensors_in(value)
        if [t.size() for t in old] != [t.size() for t in new]:
            return False
        if [geometry(t) for t in old] != [geometry(t) for t in new]:
            changed[node] = value
        return True

    def compute_view(
        self, node: Node, facts: OperatorFacts
    ) -> torch.Tensor | None:
        """The part that a scatter operator would write, in place."""
        args, kwargs = _view_arguments(node, facts)
        values: Value = map_arg((args, kwargs), self.values.__getitem__)
        try:
            with self.mode:
                view: Value = facts.view
                part: torch.Tensor = view(*values[0], **values[1])
        except Exception:  # whatever the operator has against it
            return None
        return part

    def starts_of(self, call: _Call) -> dict[Node, Value]:
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


def _is_blind(node: Node, facts: OperatorFacts) -> bool:
    """Whether an operator sees the elements alone, not how they lie."""
    if facts.writes and node.target is not _COPY:
        return False
    return not facts.random and not facts.reads_layout


def _viewed_by(node: Node) -> Node | None:
    """What a view, or an item of a list of views, is a view of."""
    facts = facts_of(node.target)
    if facts is None:
        source = node.args[0] if is_item(node) else None
    else:
        source = facts.views[0].of(node) if len(facts.views) == 1 else None
    return source if isinstance(source, Node) else None


# -- the rules, as `reinplace` numbers them ----------------------------------


def _rule_1a_metadata(plan: _Plan, call: _Call) -> str | None:
    """The result must fit where "a" is."""
    base, result = plan.values[call.base], plan.values[call.node]
    if not isinstance(base, torch.Tensor) or not tensors_in(base):
        return "its first argument is no tensor with a storage"
    if base.size() != result.size():
        return f"size {list(result.size())} is not {list(base.size())}"
    if base.dtype != result.dtype or base.device != result.device:
        return (
            f"{result.dtype} on {result.device} is not "
            f"{base.dtype} on {base.device}"
        )
    if geometry(base).overlaps_itself():
        return f"elements of {call.base} share memory"
    if base.requires_grad or result.requires_grad:
        return f"autograd follows {call.base}: call under torch.no_grad()"
    return None


def _rule_1b_inputs(plan: _Plan, call: _Call) -> str | None:
    """No input must change, but one that is overwritten anyway."""
    memory = plan.memories[call.memory]
    if memory.held is not None:
        return memory.held
    if memory.owner is None:
        return None
    for place in plan.next_uses(memory, call.place):
        if _overwrites(plan, plan.nodes[place], call):
            call.limit = place
            return None
    return f"{call.base} is, or aliases, {memory.owner}"


def _overwrites(plan: _Plan, user: Node, call: _Call) -> bool:
    """Whether a later `copy_` writes all that writing "a" would."""
    into = user.args[0] if user.args else None
    if user.target is not _COPY or not isinstance(into, Node):
        return False
    one, other = plan.values[into], plan.values[call.base]
    if not plan.share_storage(one, other):
        return False
    all_of, part = geometry(one), geometry(other)
    (start, end), (first, last) = all_of.span(), part.span()
    return (
        all_of.dtype.itemsize == part.dtype.itemsize
        and all_of.fills_its_span()
        and start <= first
        and last <= end
    )


def _rule_1c_arguments(plan: _Plan, call: _Call) -> str | None:
    """No other argument may be in the memory that is written."""
    for arg in arguments_of(call.node)[1:]:
        if call.memory in plan.storages.classes(arg):
            return f"{arg} shares the memory of {call.base}"
    return None


def _rule_2_later_uses(plan: _Plan, call: _Call) -> str | None:
    """Nobody must want the old value of "a" any more."""
    limit = len(plan.nodes) if call.limit is None else call.limit
    uses = plan.next_uses(plan.memories[call.memory], call.place)
    users = [plan.nodes[place] for place in uses if place < limit]
    if len(users) == 1 and _has_nothing_left(plan, call, users[0]):
        call.scatter = users.pop()
    if users:
        return f"{call.base} or a view of it is used later, by {users[0]}"
    return None if call.limit is None else _after_limit(plan, call, limit)


def _has_nothing_left(plan: _Plan, call: _Call, user: Node) -> bool:
    """Whether `user` puts the result back to where "a" is anyway (2c)."""
    facts = facts_of(user.target)
    if facts is None or facts.view is None or facts.source is None:
        return False
    into, source = user.args[0], facts.source.of(user)
    if not isinstance(into, Node) or not isinstance(source, Node):
        return False
    if plan.storages.classes(into) != [call.memory]:
        return False
    starts = {call.node: plan.values[call.base]}
    found = plan.through_views(source, starts)
    if not isinstance(found, torch.Tensor):
        return False
    where = plan.compute_view(user, facts)
    return where is not None and plan.same_place(found, where)


def _after_limit(plan: _Plan, call: _Call, limit: int) -> str | None:
    """Nobody must want the result after `copy_` has overwritten it."""
    starts = plan.starts_of(call)
    for memory in [one for node in starts for one in plan.memory_of(node)]:
        if memory.last > limit or memory.held or memory.owner:
            return f"the result is needed after {plan.nodes[limit]}"
    into, source = plan.nodes[limit].args[:2]
    if not isinstance(into, Node) or not isinstance(source, Node):
        return None
    touched = {call.memory}
    for node in starts:
        touched.update(plan.storages.classes(node))
    if touched.isdisjoint(plan.storages.classes(source)):
        return None
    found = plan.through_views(source, starts)
    if isinstance(found, torch.Tensor) and plan.same_place(
        found, plan.values[into]
    ):
        return None
    return f"{plan.nodes[limit]} would read what it writes"


def _rule_4_layout(plan: _Plan, call: _Call) -> str | None:
    """No later node must notice that the result has the strides of "a"."""
    changed = {
        node: value
        for node, value in plan.starts_of(call).items()
        if geometry(value) != geometry(plan.values[node])
    }
    if call.facts.random and changed:
        return "random numbers are drawn in the order of memory"
    waiting = [plan.places[user] for node in changed for user in node.users]
    heapq.heapify(waiting)
    looked_at: set[int] = set()
    while waiting:
        place = heapq.heappop(waiting)
        node = plan.nodes[place]
        if place in looked_at or node is call.scatter or node.op == "output":
            continue
        looked_at.add(place)
        if len(looked_at) > _MOST_LOOKED_AT or not plan.recompute(
            node, changed
        ):
            return f"{node} depends on the strides of the result"
        if node in changed:
            for user in node.users:
                heapq.heappush(waiting, plan.places[user])
    call.changed = changed
    return None


_RULES: Final[dict[str, _Rule]] = {
    "1a": _rule_1a_metadata,
    "1b": _rule_1b_inputs,
    "1c": _rule_1c_arguments,
    "2": _rule_2_later_uses,
    "4": _rule_4_layout,
}
"""What a call must pass, in this order."""


# -- rewriting ---------------------------------------------------------------


def _rewrite(gm: GraphModule, plan: _Plan) -> GraphModule:
    """Do what was planned: steps (3) to (5)."""
    for node in plan.nodes:
        node.meta["fake_result"] = plan.values[node]
        _step_4_redirect(node, plan)
        facts = plan.in_place.get(node)
        if facts is not None and node not in plan.erased:
            if facts.twin is None:
                _step_3a_view_and_copy(node, facts)
                plan.erased[node] = None
            else:
                _step_3b_twin(node, facts)
    _step_5_erase(gm, plan)
    gm.recompile()
    return gm


def _step_3a_view_and_copy(node: Node, facts: OperatorFacts) -> None:
    """`{view}_scatter(a, b, args...)` to `{view}(a, args...).copy_(b)`."""
    if facts.view is None or facts.source is None:
        raise AssertionError(f"{node} is no scatter operator")
    source = facts.source.of(node)
    graph = node.graph
    with graph.inserting_before(node):
        view = graph.call_function(facts.view, *_view_arguments(node, facts))
        graph.call_function(_COPY, (view, source))


def _view_arguments(
    node: Node, facts: OperatorFacts
) -> tuple[tuple[Argument, ...], dict[str, Argument]]:
    """What a scatter operator's view takes: all but `src`."""
    kwargs = {key: arg for key, arg in node.kwargs.items() if key != "src"}
    return (node.args[0], *node.args[2:]), kwargs


def _step_3b_twin(node: Node, facts: OperatorFacts) -> None:
    """`foo(a, args...)` to `foo_(a, args...)`."""
    if facts.twin is not None:
        node.target = facts.twin


def _step_4_redirect(node: Node, plan: _Plan) -> None:
    """Read what was computed in place from where it is."""
    if any(arg in plan.replaced for arg in node.all_input_nodes):
        node.args = map_arg(node.args, plan.now)
        node.kwargs = dict(map_arg(dict(node.kwargs), plan.now))


def _step_5_erase(gm: GraphModule, plan: _Plan) -> None:
    """Take out what has nothing left to do; nobody reads it any more."""
    for node in plan.erased:
        gm.graph.erase_node(node)


# -- memory ------------------------------------------------------------------


def _peak_bytes(plan: _Plan, after: bool) -> int:
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
