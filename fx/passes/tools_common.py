"""Passes: what a node calls, and the order in which nodes can run."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import chain, count
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import torch
from torch import nn

from ..extra.lending.lending import names_of
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node
from ..use_def.text import _get_qualified_name
from ..use_def.values import AnyValue

__all__ = [
    "get_acc_ops_name",
    "get_node_target",
    "is_node_output_tensor",
    "legalize_graph",
    "stable_topological_sort",
]

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__)

Names: TypeAlias = list[str]
NodeList: TypeAlias = list[Node]
NodeSet: TypeAlias = set[Node]
Tensors: TypeAlias = tuple[torch.Tensor] | list[torch.Tensor]
TensorOrTensors: TypeAlias = torch.Tensor | Tensors

CALLABLE_NODE_OPS: Final = {"call_module", "call_function", "call_method"}
"""The opcodes of calls."""

Pair: TypeAlias = tuple[Node, Node]
"""Two nodes, of which the first must run before the second."""

Leaders: TypeAlias = Mapping[Node, Node]
"""Node -> the node that stands for it."""

EMPTY: Final[Leaders] = {}
"""No node stands for another one."""

ItemT = TypeVar("ItemT", bound=Hashable)


def get_acc_ops_name(k: str | type) -> str:
    """The dotted name of a class; a string is a name already.

    A function of any module `acc_ops` is "acc_ops." and its name.

    torch.fx: passes/tools_common.py, get_acc_ops_name
    """
    if isinstance(k, str):
        return k
    module = k.__module__ or ""
    if "acc_ops" in module:
        return f"acc_ops.{k.__name__}"
    return f"{module.replace('torch._ops', 'torch.ops')}.{k.__name__}"


def get_node_target(submodules: Mapping[str, nn.Module], node: Node) -> str:
    """What a node calls, as a text that a table can have as a key.

    Args:
        submodules: path -> module, as `dict(gm.named_modules())`.
        node: a call.

    Returns:
        The name of a method; the dotted name of a function, "torch.relu"; or
        that of the class of a module, "torch.nn.modules.linear.Linear".

    Raises:
        AssertionError: the node is not a call.

    torch.fx: passes/tools_common.py, get_node_target
    """
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(
            "Expect op types of call_module, call_function, call_method, "
            f"but found {node.op}"
        )
    if node.op == "call_module":
        module = submodules[str(node.target)]
        origin = getattr(module, "_base_class_origin", type(module))
        return get_acc_ops_name(origin)
    if node.op == "call_method":
        return str(node.target)
    target: AnyValue = node.target
    if "acc_ops" in (getattr(target, "__module__", "") or ""):
        return f"acc_ops.{target.__name__}"
    return _get_qualified_name(target)


def is_node_output_tensor(node: Node) -> bool:
    """Whether a node's value is a tensor, as `ShapeProp` has noted it.

    torch.fx: passes/tools_common.py, is_node_output_tensor
    """
    noted = node.meta.get("type")
    return noted is not None and issubclass(noted, torch.Tensor)


def legalize_graph(gm: GraphModule) -> GraphModule:
    """Sort the nodes of a module, as `stable_topological_sort` does.

    Raises:
        RuntimeError: nodes use each other in a circle; nothing is moved.

    torch.fx: passes/tools_common.py, legalize_graph; it sorts level by level,
    so that a write may pass a read in a graph that was in order.
    """
    try:
        return stable_topological_sort(gm)
    except AssertionError as error:
        raise RuntimeError(str(error)) from None


def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """Move each node of a module behind its inputs, and recompile.

    A node goes no further than it must: the first in the old order runs first
    among those that can run.

    Returns:
        `gm` itself.

    Raises:
        AssertionError: nodes use each other in a circle; nothing is moved.

    Cost: O(uses + nodes · log nodes).

    torch.fx: passes/tools_common.py, stable_topological_sort
    """
    sort_nodes(gm.graph)
    gm.recompile()
    return gm


def sort_nodes(
    graph: Graph, pairs: Iterable[Pair] = (), leader: Leaders = EMPTY
) -> None:
    """Move each node behind its inputs, and no further than it must.

    Args:
        graph: sorted in place.
        pairs: of nodes, of which the first must run before the second.
        leader: for nodes in the pairs that are not in the graph any more, the
            node that does their work.

    Raises:
        AssertionError: some nodes wait for each other; nothing is moved.

    Cost: O(uses + pairs + nodes · log nodes).
    """
    last = graph._root  # noqa: SLF001
    for node in sorted_nodes(graph.nodes, pairs, leader):
        if last.next is not node:
            last.append(node)
        last = node


def sorted_nodes(
    nodes: Iterable[Node], pairs: Iterable[Pair] = (), leader: Leaders = EMPTY
) -> list[Node]:
    """Some nodes, each behind its inputs and no later than it must be.

    Args:
        nodes: in an order to keep to; other nodes do not matter.
        pairs: of nodes, of which the first must come before the second.
        leader: node -> the node that stands for it.

    Raises:
        AssertionError: some nodes wait for each other.

    Cost: O(uses + pairs + nodes · log nodes).
    """
    later: dict[Node, dict[Node, None]] = {}
    uses: list[Pair] = []
    for node in nodes:
        later.setdefault(leader.get(node, node), {})
        uses += [(value, node) for value in node.all_input_nodes]
    waits = dict.fromkeys(later, 0)
    for before, after in chain(uses, pairs):
        first, second = leader.get(before, before), leader.get(after, after)
        users = later.get(first)
        if users is None or first is second or second in users:
            continue
        if second in waits:
            users[second] = None
            waits[second] += 1
    place = {node: number for number, node in enumerate(later)}
    order = topological_order(waits, later, lambda node, _: place[node])
    if len(order) < len(later):
        left = [node for node in later if waits[node]]
        raise AssertionError(f"Input graph has cycles, unable to add {left}")
    return order


def topological_order(
    waits: dict[ItemT, int],
    later: Mapping[ItemT, Iterable[ItemT]],
    key: Callable[[ItemT, dict[ItemT, int]], AnyValue],
) -> list[ItemT]:
    """Items, each behind those that must come before it.

    Args:
        waits: item -> how many must come before it. It is 0 afterwards for the
            items that are returned; the others wait for each other.
        later: item -> those that must come after it.
        key: called with an item that can come next, and with the places of
            those before it. The smallest key comes next, or of equal keys the
            one that could first.

    Cost: O(what is in `later` + items · log items), and the calls of `key`.
    """
    places: dict[ItemT, int] = {}
    ready: list[tuple[AnyValue, int, ItemT]] = []
    numbers = count()
    free = [item for item, number in waits.items() if not number]
    while free or ready:
        for item in free:
            heapq.heappush(ready, (key(item, places), next(numbers), item))
        *_, item = heapq.heappop(ready)
        places[item] = len(places)
        free = []
        for other in later[item]:
            waits[other] -= 1
            if not waits[other]:
                free.append(other)
    return [*places]
