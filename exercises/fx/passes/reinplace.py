"""Stage 08, reinplace: compute in memory that no later node needs.

    b = aten.add(a, 1)      becomes      aten.add_(a, 1), and b is a

if the program computes the same.  That depends on all that happens later, so
every call is decided first, on a `Simulation` of the rewritten graph, and only
then is the graph rewritten.  If the graph or the inputs are wrong, the error
comes before anything has changed.

Why it is sound: writing b into the memory of a changes what a later node reads
there, if it expects a.  The simulation knows for every value which storages it
may be in (`aliasing`), and for each of those the later uses in order.  A call
is done in place only if there are none, or one that the rewriting removes.
Afterwards the two memories are one, which has the later uses of both.
"""

from __future__ import annotations

import torch

from ..graph_module import GraphModule
from ..node import Node
from ..reinplacing.aliasing import arguments_of, geometry, tensors_in
from ..reinplacing.simulation import (
    COPY,
    NotInPlace,
    ReinplaceReport,
    Simulation,
    Site,
    Verdict,
    report_on,
)
from ..reinplacing.strides import (
    rule_4_strides,
    through_views,
    view_arguments,
    written_by_scatter,
)
from ..rewriting.snapshot import Snapshot
from ..schemas.facts import facts_of
from ..use_def.values import AnyValue, Args

__all__ = ["ReinplaceReport", "Verdict", "reinplace", "reinplace_report"]


def reinplace(gm: GraphModule, *sample_args: AnyValue) -> GraphModule:
    """Turn calls of operators into in-place calls where that is safe.

    For each call `b = foo(a, args...)` of an operator with an in-place
    variant, in order:

    (1) Look at "a" and "args...":

        (1a) The result must have the size, dtype and device of "a", and no
        two elements of "a" may share memory (`expand`). Autograd must not
        record operations on "a", as it may need the old value. A scatter must
        write within "a": `as_strided_scatter` can reach beyond it.

        (1b) "a" must not be, or alias, an input or a tensor of the module.
        Except: an input that `copy_` overwrites later, as functionalization
        does it, is free memory until then, unless another input shares it.

        (1c) "a" must not share memory with another argument, nor be among
        them again. Two parts of one storage that are apart share nothing.

    (2) "a" and its aliases must not be used later, except (a) by views that
    are not used themselves, and (c) exactly once, by the scatter operator
    that puts b back where the view "a" came from. That scatter is redundant
    then. (b, the repeated argument, is part of (1c).)

    (3) Rewrite: (3a) `{view}_scatter(a, b, args...)` becomes
    `{view}(a, args...).copy_(b)`; (3b) any other `foo` becomes `foo_`.

    (4) Later uses of the result become uses of "a", and from then on the
    storages of both are one. If "a" has other strides than the result had,
    no later node may depend on them, and the result must not be returned.
    What is returned never shares memory that it did not share before.

    (5) Erase the scatter operators that are redundant, and the `copy_` of an
    input onto itself.

    Args:
        gm: a functional graph of ATen operators, such as `make_fx` gives for
            `torch.func.functionalize(f)`. Other calls are left as they are,
            and so is the memory of their arguments and results.
        *sample_args: inputs like those that `gm` will be called with: with
            the same sizes, strides and dtypes, and sharing storage where
            those share it.

    Returns:
        `gm`, rewritten and recompiled. `node.meta["fake_result"]` has each
        node's value without data.

    Raises:
        TypeError: `gm` is not a GraphModule.
        RuntimeError: there are too few sample inputs or too many.
        Whatever an operator raises for the sample inputs, with the node
        added; KeyboardInterrupt. The graph is then as it was.

    Cost: O((nodes + arguments) log nodes), and running all on fake tensors.

    torch.fx: passes/reinplace.py, reinplace
    """
    return _rewrite(gm, _simulate(gm, sample_args))


def reinplace_report(
    gm: GraphModule, *sample_args: AnyValue
) -> ReinplaceReport:
    """Say what `reinplace` would do, and what stops it elsewhere.

    Args:
        gm: as for `reinplace`; stays as it is.
        *sample_args: as for `reinplace`.

    Raises:
        As `reinplace` does.

    Cost: as `reinplace`.
    """
    return report_on(_simulate(gm, sample_args))


def _simulate(gm: GraphModule, sample_args: Args) -> Simulation:
    """Decide about every node in order; the graph stays as it is."""
    if not isinstance(gm, GraphModule):
        raise TypeError(
            f"reinplace rewrites a GraphModule, not {gm!r}: make one with "
            "make_fx(torch.func.functionalize(f))(*sample_args)"
        )
    sim = Simulation(gm, sample_args)
    for place, node in enumerate(sim.nodes):
        if node in sim.erased:
            continue
        if node.target is COPY:
            sim.drop_copy_onto_itself(node)
            continue
        try:
            call = sim.candidate(place, node)
            if call is not None:
                _decide(sim, call)
        except NotInPlace as kept:
            sim.keep(node, kept)
    return sim


def _decide(sim: Simulation, call: Site) -> None:
    """Do a call in place, unless a rule raises `NotInPlace`."""
    rule_1a_metadata(sim, call)
    rule_1a_reach(sim, call)
    limit = rule_1b_inputs(sim, call)
    rule_1c_arguments(sim, call)
    scatter = rule_2_later_uses(sim, call, limit)
    if scatter is not None:
        rule_2_returned(sim, call, scatter)
    changed = rule_4_strides(sim, call, scatter)
    sim.do_in_place(call, scatter, changed)


# -- the rules, as `reinplace` numbers them ----------------------------------


def rule_1a_metadata(sim: Simulation, call: Site) -> None:
    """Rule 1a: the result must fit where "a" is.

    Raises:
        NotInPlace: it does not, or autograd may need the old value of "a":
            one of the two requires a gradient, even if this run does not
            record.
    """
    base, result = sim.values[call.base], sim.values[call.node]
    if not isinstance(base, torch.Tensor) or not tensors_in(base):
        raise NotInPlace(
            "1a", "its first argument is not a tensor with a storage"
        )
    if base.size() != result.size():
        sizes = f"size {list(result.size())} is not {list(base.size())}"
        raise NotInPlace("1a", sizes)
    if base.dtype != result.dtype or base.device != result.device:
        raise NotInPlace(
            "1a",
            f"{result.dtype} on {result.device} is not "
            f"{base.dtype} on {base.device}",
        )
    if geometry(base).overlaps_itself():
        raise NotInPlace("1a", f"elements of {call.base} share memory")
    if base.requires_grad or result.requires_grad:
        recorded = "call under torch.no_grad()"
        cure = recorded if result.requires_grad else "give it detached"
        raise NotInPlace("1a", f"autograd may need {call.base}: {cure}")


def rule_1a_reach(sim: Simulation, call: Site) -> None:
    """Rule 1a: a scatter must not write outside of "a".

    Raises:
        NotInPlace: it does, or where it writes is not known.
    """
    facts = facts_of(call.node.target)
    if facts is None or facts.view is None:
        return
    part = written_by_scatter(sim, call.node, facts)
    if part is None:
        raise NotInPlace("1a", f"where {call.node} writes is not known")
    start, end = geometry(sim.values[call.base]).span()
    first, last = geometry(part).span()
    if first < start or end < last:
        raise NotInPlace("1a", f"{call.node} writes outside of {call.base}")


def rule_1b_inputs(sim: Simulation, call: Site) -> int:
    """Rule 1b: no input may change, except one that is overwritten anyway.

    Returns:
        The place up to which the memory of "a" is free: that of the `copy_`
        that overwrites an input, or the end of the graph.

    Raises:
        NotInPlace: "a" is in memory that no call may write.
    """
    raise NotImplementedError("stage 08: rule_1b_inputs")


def _overwrites(sim: Simulation, user: Node, call: Site) -> bool:
    """Whether a later `copy_` writes every element that the call would."""
    into = user.args[0] if len(user.args) > 1 else None
    if user.target is not COPY or not isinstance(into, Node):
        return False
    target, base = sim.values[into], sim.values[call.base]
    if not sim.share_storage(target, base):
        return False
    all_of, part = geometry(target), geometry(base)
    (start, end), (first, last) = all_of.span(), part.span()
    return (
        all_of.dtype.itemsize == part.dtype.itemsize
        and all_of.fills_its_span()
        and start <= first
        and last <= end
    )


def rule_1c_arguments(sim: Simulation, call: Site) -> None:
    """Rule 1c: no other argument may be in the memory that is written.

    Raises:
        NotInPlace: one is, or "a" is given twice.
    """
    raise NotImplementedError("stage 08: rule_1c_arguments")


def _are_apart(sim: Simulation, one: AnyValue, other: torch.Tensor) -> bool:
    """Whether two tensors are in different parts of one storage."""
    if not isinstance(one, torch.Tensor) or one.dtype != other.dtype:
        return False
    (start, end), (first, last) = geometry(one).span(), geometry(other).span()
    return sim.share_storage(one, other) and (end <= first or last <= start)


def rule_2_later_uses(sim: Simulation, call: Site, limit: int) -> Node | None:
    """Rule 2: no later node may need the old value of "a".

    Args:
        sim: the simulation.
        call: the call.
        limit: the place up to which the memory is free (1b).

    Returns:
        The one later user, if it is a scatter that is redundant when the call
        is done in place.

    Raises:
        NotInPlace: another node uses the memory, or the result is needed after
            the memory has been overwritten.
    """
    raise NotImplementedError("stage 08: rule_2_later_uses")


def rule_2_returned(sim: Simulation, call: Site, scatter: Node) -> None:
    """Rule 2: a result and its scatter must not both be returned.

    Raises:
        NotInPlace: the caller would get two values in one memory, which had one
            each.
    """
    if sim.is_returned(call.node) and sim.is_returned(scatter):
        both = f"{call.node} and {scatter}"
        raise NotInPlace("2", f"{both} are returned, and would share memory")


def is_redundant_scatter(sim: Simulation, call: Site, user: Node) -> bool:
    """Whether a scatter would put the result where it is already (2c).

    Args:
        sim: the simulation.
        call: the call; suppose that it is done in place.
        user: the node in question, which need not be a scatter.
    """
    raise NotImplementedError("stage 08: is_redundant_scatter")


def _check_copy(
    sim: Simulation, call: Site, scatter: Node | None, limit: int
) -> None:
    """Rule 2: no node may need the result after `copy_` has overwritten it.

    Raises:
        NotInPlace: a node does, or `copy_` would read what it has just written.
    """
    copy = sim.nodes[limit]
    moved = sim.moved(call, scatter)
    for memory in [m for node in moved for m in sim.memories_of(node)]:
        if memory.last > limit or memory.blocked or memory.owner:
            raise NotInPlace("2", f"the result is needed after {copy}")
    into, source = copy.args[:2]
    if not isinstance(into, Node) or not isinstance(source, Node):
        return
    touched = {call.memory}
    for node in moved:
        touched.update(sim.storages.alias_sets(node))
    if touched.isdisjoint(sim.storages.alias_sets(source)):
        return
    found = through_views(sim, source, moved)
    in_place = isinstance(found, torch.Tensor) and sim.same_place(
        found, sim.values[into]
    )
    if not in_place:
        raise NotInPlace("2", f"{copy} would read what it writes")


# -- rewriting ---------------------------------------------------------------


def _rewrite(gm: GraphModule, sim: Simulation) -> GraphModule:
    """Rewrite the graph as was decided: steps (3) to (5)."""
    with Snapshot(gm):
        for node in sim.nodes:
            node.meta["fake_result"] = sim.values[node]
            is_left_over = node in sim.erased
            if node in sim.in_place:
                is_left_over = _step_3_in_place(node)
            if node in sim.replaced:
                node.replace_all_uses_with(sim.replacement(node))  # (4)
            if is_left_over:
                gm.graph.erase_node(node)  # (5)
        gm.recompile()
    return gm


def _step_3_in_place(node: Node) -> bool:
    """Compute the result of a call in its first argument.

    Returns:
        Whether new nodes do that, so that the call itself is left over.
    """
    facts = facts_of(node.target)
    if facts is None:
        raise AssertionError(f"{node} is not a call of an operator")
    if facts.view is None:
        # (3b) `foo(a, args...)` becomes `foo_(a, args...)`.
        node.target = facts.inplace_variant or node.target
        return False
    # (3a) `{view}_scatter(a, b, args...)` becomes
    # `{view}(a, args...).copy_(b)`.
    source = facts.parameters["src"].of(node.args, node.kwargs)
    with node.graph.inserting_before(node):
        args, kwargs = view_arguments(node)
        view = node.graph.call_function(facts.view, args, kwargs)
        node.graph.call_function(COPY, (view, source))
    return True
