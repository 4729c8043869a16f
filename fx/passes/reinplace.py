"""Stage 08, reinplace: compute in memory that nobody needs any more.

    b = aten.add(a, 1)      becomes      aten.add_(a, 1), and b is a

where no one can tell the difference.  That is a statement about all that
happens later, so first everything is decided (`Plan`), on fake values and
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
from dataclasses import dataclass
from typing import Final

import torch

from ..graph_module import GraphModule
from ..memory.facts import Facts, facts_of
from ..node import Node, map_arg
from ..reinplacing.aliasing import (
    arguments_of,
    geometry,
    tensors_in,
)
from ..reinplacing.plan import (
    COPY,
    Call,
    Plan,
    Rule,
    Verdict,
    peak_bytes,
    view_arguments,
)
from ..usedef.values import Value

__all__ = ["ReinplaceReport", "Verdict", "reinplace", "reinplace_report"]


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
        functionalization does it, is free memory until then, unless another
        input shares it.

        (1c) "a" must not share memory with another argument, nor stand among
        them again. Two parts of one storage that are apart share nothing.

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
    return _rewrite(gm, Plan(gm, sample_args, _RULES))


def reinplace_report(gm: GraphModule, *sample_args: Value) -> ReinplaceReport:
    """Say what `reinplace` would do, and for the rest what stops it.

    Args:
        gm: as for `reinplace`; stays as it is.
        *sample_args: as for `reinplace`.

    Raises:
        As `reinplace` does.

    Cost: as `reinplace`.
    """
    plan = Plan(gm, sample_args, _RULES)
    return ReinplaceReport(
        tuple(plan.done),
        tuple(plan.kept),
        peak_bytes(plan, after=False),
        peak_bytes(plan, after=True),
    )


# -- the rules, as `reinplace` numbers them ----------------------------------


def _rule_1a_metadata(plan: Plan, call: Call) -> str | None:
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


def _rule_1b_inputs(plan: Plan, call: Call) -> str | None:
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


def _overwrites(plan: Plan, user: Node, call: Call) -> bool:
    """Whether a later `copy_` writes all that writing "a" would."""
    into = user.args[0] if user.args else None
    if user.target is not COPY or not isinstance(into, Node):
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


def _rule_1c_arguments(plan: Plan, call: Call) -> str | None:
    """No other argument may be in the memory that is written."""
    for arg in arguments_of(call.node)[1:]:
        if call.memory in plan.storages.classes(arg) and not _are_apart(
            plan, plan.values[arg], plan.values[call.base]
        ):
            return f"{arg} shares the memory of {call.base}"
    return None


def _are_apart(plan: Plan, one: Value, other: torch.Tensor) -> bool:
    """Whether two tensors are in different parts of one storage."""
    if not isinstance(one, torch.Tensor) or one.dtype != other.dtype:
        return False
    (start, end), (first, last) = geometry(one).span(), geometry(other).span()
    return plan.share_storage(one, other) and (end <= first or last <= start)


def _rule_2_later_uses(plan: Plan, call: Call) -> str | None:
    """Nobody must want the old value of "a" any more."""
    limit = len(plan.nodes) if call.limit is None else call.limit
    uses = plan.next_uses(plan.memories[call.memory], call.place)
    users = [plan.nodes[place] for place in uses if place < limit]
    if len(users) == 1 and _has_nothing_left(plan, call, users[0]):
        call.scatter = users.pop()
    if users:
        return f"{call.base} or a view of it is used later, by {users[0]}"
    return None if call.limit is None else _after_limit(plan, call, limit)


def _has_nothing_left(plan: Plan, call: Call, user: Node) -> bool:
    """Whether `user` puts the result back to where "a" is anyway (2c)."""
    facts = facts_of(user.target)
    if facts is None or facts.view is None or facts.source is None:
        return False
    into, source = user.args[0], facts.source.of(user.args, user.kwargs)
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


def _after_limit(plan: Plan, call: Call, limit: int) -> str | None:
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


def _rule_4_layout(plan: Plan, call: Call) -> str | None:
    """No later node must notice that the result has the strides of "a"."""
    changed = {
        node: value
        for node, value in plan.starts_of(call).items()
        if geometry(value) != geometry(plan.values[node])
    }
    if call.facts.draws and changed:
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


_MOST_LOOKED_AT: Final = 100
"""Nodes that are computed again to see who notices other strides."""

_RULES: Final[dict[str, Rule]] = {
    "1a": _rule_1a_metadata,
    "1b": _rule_1b_inputs,
    "1c": _rule_1c_arguments,
    "2": _rule_2_later_uses,
    "4": _rule_4_layout,
}
"""What a call must pass, in this order."""


# -- rewriting ---------------------------------------------------------------


def _rewrite(gm: GraphModule, plan: Plan) -> GraphModule:
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


def _step_3a_view_and_copy(node: Node, facts: Facts) -> None:
    """`{view}_scatter(a, b, args...)` to `{view}(a, args...).copy_(b)`."""
    if facts.view is None or facts.source is None:
        raise AssertionError(f"{node} is no scatter operator")
    source = facts.source.of(node.args, node.kwargs)
    graph = node.graph
    with graph.inserting_before(node):
        view = graph.call_function(facts.view, *view_arguments(node, facts))
        graph.call_function(COPY, (view, source))


def _step_3b_twin(node: Node, facts: Facts) -> None:
    """`foo(a, args...)` to `foo_(a, args...)`."""
    if facts.twin is not None:
        node.target = facts.twin


def _step_4_redirect(node: Node, plan: Plan) -> None:
    """Read what was computed in place from where it is."""
    if any(arg in plan.replaced for arg in node.all_input_nodes):
        node.args = map_arg(node.args, plan.now)
        node.kwargs = dict(map_arg(dict(node.kwargs), plan.now))


def _step_5_erase(gm: GraphModule, plan: Plan) -> None:
    """Take out what has nothing left to do; nobody reads it any more."""
    for node in plan.erased:
        gm.graph.erase_node(node)
