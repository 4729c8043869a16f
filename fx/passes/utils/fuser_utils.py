"""Passes: let one call of a module stand for several nodes of a graph."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import count

from ...graph import Graph
from ...graph_module import GraphModule
from ...node import Node
from ..tools_common import (
    NodeList,
    Pair,
    legalize_graph,
    sort_nodes,
    sorted_nodes,
)
from .call_order import kept_in_order
from .common import lift_subgraph_as_module, subgraph_of
from .matcher_utils import is_convex

__all__ = [
    "erase_nodes",
    "fuse_as_graphmodule",
    "fuse_by_partitions",
    "insert_subgm",
    "legalize_graph",
    "topo_sort",
    "validate_partition",
]


def topo_sort(nodes: NodeList) -> NodeList:
    """Some nodes of a graph, each behind its inputs among them.

    Raises:
        AssertionError: nodes use each other in a circle.

    Cost: O(uses + nodes · log nodes).

    torch.fx: passes/utils/fuser_utils.py, topo_sort
    """
    return sorted_nodes(nodes)


def validate_partition(partition: NodeList) -> bool:
    """Whether no path along users leaves some nodes and comes back.

    Cost: as `is_convex`.

    torch.fx: passes/utils/fuser_utils.py, validate_partition
    """
    return is_convex(set(partition))


def fuse_as_graphmodule(
    gm: GraphModule,
    nodes: NodeList,
    module_name: str,
    partition_lookup_table: Mapping[Node, object] | None = None,
    *,
    always_return_tuple: bool = False,
) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:
    """Copy some nodes into a module of their own.

    Args:
        gm: has the nodes; it is not changed.
        nodes: in an order in which they can run.
        module_name: the name of the new module's class.
        partition_lookup_table: not used; torch.fx has it.
        always_return_tuple: return a tuple also of one value.

    Returns:
        The module; the nodes outside whose values are its parameters, which
        are in the order in which they are used first, or in that of `gm` if
        all are inputs of `gm`; and those of `nodes` whose values it returns,
        because others use them.

    Raises:
        AssertionError: a node is erased or not in `gm`, or a path leaves the
            nodes and comes back.

    Cost: O(nodes of the graph + uses).

    torch.fx: passes/utils/fuser_utils.py, fuse_as_graphmodule
    """
    for node in nodes:
        is_there = not node._erased  # noqa: SLF001
        if is_there and node.graph.owning_module is gm:
            continue
        raise AssertionError(
            f"{node} doesn't belong to passed in graph module "
            f"{type(gm).__name__}: it is erased, or in another graph"
        )
    if not validate_partition(nodes):
        raise AssertionError(_CYCLE)
    return _fused(gm, nodes, module_name, always_return_tuple)


_CYCLE = "Invalid partition, found dependency cycles"


def _fused(
    gm: GraphModule, nodes: Sequence[Node], name: str, as_tuple: bool
) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:
    """What `fuse_as_graphmodule` returns."""
    inside = set(nodes)
    outputs = [node for node in nodes if not inside.issuperset(node.users)]
    graph, inputs = subgraph_of(
        nodes, outputs, as_tuple=as_tuple, in_order=True
    )
    fused, _ = lift_subgraph_as_module(gm, graph, class_name=name)
    return fused, tuple(inputs), tuple(outputs)


def insert_subgm(
    gm: GraphModule,
    sub_gm: GraphModule,
    orig_inputs: tuple[Node, ...],
    orig_outputs: tuple[Node, ...],
    insertion_point: Node | None = None,
) -> GraphModule:
    """Call a module, and let all users of some nodes use what it returns.

    Args:
        gm: changed, but not recompiled.
        sub_gm: the module, which is added under the name of its class.
        orig_inputs: what it is called with.
        orig_outputs: the nodes whose users use its results instead.
        insertion_point: the node behind which it is called; by default the
            last of the outputs.

    Raises:
        AssertionError: there is neither an insertion point nor an output.

    torch.fx: passes/utils/fuser_utils.py, insert_subgm
    """
    place = insertion_point or max(orig_outputs, default=None)
    if place is None:
        raise AssertionError(
            "Cannot determine insertion point: no insertion_point provided "
            "and orig_outputs is empty. Pass the last node of the partition."
        )
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    with gm.graph.inserting_after(place):
        call = gm.graph.call_module(name, orig_inputs)
    results = sub_gm.graph.output_node().args[0]
    if len(orig_outputs) == 1 and not isinstance(results, tuple):
        orig_outputs[0].replace_all_uses_with(call, propagate_meta=True)
        return gm
    last = call
    for number, node in enumerate(orig_outputs):
        with gm.graph.inserting_after(last):
            last = gm.graph.call_function(operator.getitem, (call, number))
        node.replace_all_uses_with(last, propagate_meta=True)
    call.meta["val"] = tuple(node.meta.get("val") for node in orig_outputs)
    return gm


def erase_nodes(gm: GraphModule, nodes: NodeList) -> None:
    """Erase nodes, the last one first.

    torch.fx: passes/utils/fuser_utils.py, erase_nodes
    """
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def fuse_by_partitions(
    gm: GraphModule,
    partitions: Sequence[Collection[Node]],
    prefix: str = "fused_",
    always_return_tuple: bool = False,
) -> GraphModule:
    """Let one call of a module stand for the nodes of each partition.

    Nodes move only behind what they need, and calls with effects stay in
    order with those that could notice.

    Args:
        gm: changed, and recompiled.
        partitions: the nodes of each; no node in two of them.
        prefix: the modules are named with a number behind it.
        always_return_tuple: return a tuple also from modules with one output.

    Returns:
        `gm` itself.

    Raises:
        AssertionError: two partitions, or one and other nodes, would have to
            run before each other; nothing is changed then.

    Cost: O(uses + nodes · log nodes), and recompiling.

    torch.fx: passes/utils/fuser_utils.py, fuse_by_partitions; it moves nodes
    by their edges alone, so that a write may pass a read, and when it finds a
    wrong piece, those before it are fused already.
    """
    graph = gm.graph
    kept = list(kept_in_order(graph))
    _check(graph, kept, partitions)
    leader: dict[Node, Node] = {}
    free = (
        name
        for name in (f"{prefix}{number}" for number in count())
        if not hasattr(gm, name)
    )
    for part in filter(None, partitions):
        nodes = sorted(part)
        fused, inputs, outputs = _fused(
            gm, nodes, next(free), always_return_tuple
        )
        insert_subgm(gm, fused, inputs, outputs, nodes[-1])
        leader |= dict.fromkeys(nodes, nodes[-1].next)
        erase_nodes(gm, nodes)
    sort_nodes(graph, kept, leader)
    gm.recompile()
    return gm


def _check(
    graph: Graph, kept: Iterable[Pair], partitions: Sequence[Collection[Node]]
) -> None:
    """Raise unless there is an order with each partition as one node."""
    leader: dict[Node, Node] = {}
    for part in filter(None, partitions):
        first = min(part)
        for node in part:
            if node.op in ("placeholder", "output") or node.graph is not graph:
                raise AssertionError(
                    f"{node} is not a call or attribute of the graph"
                )
            if node in leader:
                raise AssertionError(f"{node} is in two partitions")
            leader[node] = first
    try:
        sorted_nodes(graph.nodes, kept, leader)
    except AssertionError as error:
        raise AssertionError(f"{_CYCLE}: {error}") from None
