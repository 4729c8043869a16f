"""Stage 08, reinplace: what nodes compute, if their inputs lie elsewhere.

A result that is written into the memory of "a" has the offset and the strides
of "a".  Later nodes are computed again on fake tensors, to find where their
values would be then, and whether any of them depends on the strides.

The change is followed down the graph in its order, so that each node is
computed once.  Any exception means no, and two bounds keep the pass from being
quadratic on strange graphs.
"""

from __future__ import annotations

import contextlib
import heapq
from collections.abc import Callable
from typing import Final, TypeAlias

import torch

from ..node import Node, map_arg
from ..schemas.facts import OperatorInfo, facts_of
from ..use_def.values import AnyValue, Argument
from .aliasing import geometry, is_item, tensors_in, without_data
from .simulation import COPY, NotInPlace, Simulation, Site

_LONGEST_CHAIN: Final = 64
"""Views between a result and the scatter operator that takes it."""

_MOST_LOOKED_AT: Final = 100
"""Nodes that are computed again to see which depend on strides."""


Given: TypeAlias = tuple[tuple[Argument, ...], dict[str, Argument]]
"""The arguments of a call, by position and by keyword."""


def _call(
    function: AnyValue,
    given: Given,
    value_of: Callable[[Node], AnyValue],
    mode: contextlib.AbstractContextManager[object],
) -> AnyValue:
    """Call a function with values for nodes.  None if it raises."""
    values: AnyValue = map_arg(given, value_of)
    try:
        with mode:
            return function(*values[0], **values[1])
    except Exception:  # an operator may raise anything
        return None


def _compute(
    sim: Simulation,
    node: Node,
    changed: dict[Node, AnyValue],
    bare: bool = False,
) -> AnyValue:
    """The value of a node for some changed inputs; None if it raises.

    Args:
        sim: the simulation.
        node: the node.
        changed: some of its inputs, with the values they would have.
        bare: run torch's own kernels on the meta device, and not their
            substitutes for fake tensors.
    """

    def value_of(arg: Node) -> AnyValue:
        value = changed[arg] if arg in changed else sim.values[arg]
        is_tensor = isinstance(value, torch.Tensor)
        return without_data(value) if bare and is_tensor else value

    mode = contextlib.nullcontext() if bare else sim.mode
    return _call(node.target, (node.args, node.kwargs), value_of, mode)


# -- where a scatter writes (2c) ---------------------------------------------


def view_arguments(node: Node) -> Given:
    """The arguments of a scatter operator without `src`: those of its view."""
    kwargs = {key: arg for key, arg in node.kwargs.items() if key != "src"}
    return (node.args[0], *node.args[2:]), kwargs


def written_by_scatter(
    sim: Simulation, node: Node, facts: OperatorInfo
) -> torch.Tensor | None:
    """The part of its first argument that a scatter operator would write.

    None if the operator's view cannot be taken, or it has no positional
    argument.
    """
    if not node.args:
        return None
    values = sim.values.__getitem__
    part: AnyValue = _call(facts.view, view_arguments(node), values, sim.mode)
    return part if isinstance(part, torch.Tensor) else None


def through_views(
    sim: Simulation, node: Node, moved: dict[Node, AnyValue]
) -> AnyValue:
    """The value of a node, if some other values were moved.

    Args:
        sim: the simulation.
        node: a node of `moved`, or a view of one, or a view of a view of one.
        moved: nodes, and their values in the new place.

    Returns:
        The value; None if anything but views leads from `moved` to the node.
    """
    views: list[Node] = []
    while node not in moved:
        facts, source = facts_of(node.target), None
        if facts is not None and len(facts.views) == 1:
            source = facts.views[0].of(node.args, node.kwargs)
        elif is_item(node):
            source = node.args[0]
        if not isinstance(source, Node) or len(views) == _LONGEST_CHAIN:
            return None
        views.append(node)
        node = source
    value = moved[node]
    for view in reversed(views):
        if value is not None:
            value = _compute(sim, view, {node: value})
        node = view
    return value


# -- rule 4 ------------------------------------------------------------------


def rule_4_strides(
    sim: Simulation, call: Site, scatter: Node | None
) -> dict[Node, AnyValue]:
    """Rule 4: no later node may depend on the strides of the result.

    Neither may the caller: what is returned has the strides that it had.

    `view` may fail on other strides, `as_strided` looks at nothing else, and
    random numbers are drawn in the order of memory.

    Args:
        sim: the simulation.
        call: the call whose result would have the strides of "a".
        scatter: the scatter operator that is redundant then, if any.

    Returns:
        The values that would have other strides or another offset.

    Raises:
        NotInPlace: a node depends on the strides.

    Cost: O(users of changed values), at most 100 nodes.
    """
    changed = {
        node: value
        for node, value in sim.moved(call, scatter).items()
        if geometry(value) != geometry(sim.values[node])
    }
    if call.facts.draws and changed:
        raise NotInPlace("4", "random numbers are drawn in the order of memory")
    waiting = [sim.places[user] for node in changed for user in node.users]
    heapq.heapify(waiting)
    looked_at: set[int] = set()
    while waiting:
        place = heapq.heappop(waiting)
        node = sim.nodes[place]
        if place in looked_at or node is scatter:
            continue
        looked_at.add(place)
        if node.op == "output":
            # A returned tensor may be another in its offset alone.
            for each in changed.keys() & {*node.all_input_nodes}:
                old, new = (
                    [geometry(t)._replace(offset=0) for t in tensors_in(value)]
                    for value in (sim.values[each], changed[each])
                )
                if old != new:
                    raise NotInPlace(
                        "4", f"{each} is returned, with strides of its own"
                    )
            continue
        if len(looked_at) > _MOST_LOOKED_AT or not _recompute(
            sim, node, changed
        ):
            raise NotInPlace(
                "4", f"{node} depends on the strides of the result"
            )
        if node in changed:
            for user in node.users:
                heapq.heappush(waiting, sim.places[user])
    return changed


def _recompute(
    sim: Simulation, node: Node, changed: dict[Node, AnyValue]
) -> bool:
    """Compute a node from changed inputs, and note its value if it changed.

    A view that has become a copy would change which nodes share storage, and so
    all earlier decisions.  Fake tensors are more lenient than the kernels where
    a size is 1, so each view is tried on the meta device as well.

    Returns:
        False if more than the strides of its value may change.
    """
    if node in sim.erased:
        return sim.replacement(node) not in changed
    facts = facts_of(node.target)
    if facts is None and not is_item(node):
        return False
    if facts is not None and (
        facts.draws
        or facts.reads_layout
        or (facts.writes and node.target is not COPY)
    ):
        return False  # it does not depend on elements alone
    value = _compute(sim, node, changed)
    old, new = tensors_in(sim.values[node]), tensors_in(value)
    if value is None or [t.size() for t in old] != [t.size() for t in new]:
        return False
    if facts is not None and facts.views:
        # Fake tensors let `view` pass in cases where the kernel raises: they
        # ignore the strides next to a dimension of size 1.
        checked = tensors_in(_compute(sim, node, changed, bare=True))
        if [geometry(t)[:3] for t in checked] != [geometry(t)[:3] for t in new]:
            return False
    elif facts is not None:
        # What was a view is a copy now, or the other way round.
        of, numbers = sim.storages.of, map(sim.storages.number_of, new)
        was_view = any(
            not set(of[node]).isdisjoint(of[arg])
            for arg in node.all_input_nodes
        )
        if was_view != any(number is not None for number in numbers):
            return False
    if [geometry(t) for t in old] != [geometry(t) for t in new]:
        changed[node] = value
    return True
