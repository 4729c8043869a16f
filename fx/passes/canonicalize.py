"""Passes: one order and one set of names for graphs that compute the same.

    a = torch.sin(x)                 cos = torch.cos(x)
    b = torch.cos(x)        →        sin = torch.sin(x)
    return a + b                     add = sin + cos
                                     return add

A program that is traced twice, or by two tracers, may be recorded in another
order and with other names.  A cache that knows graphs by their text needs one
form for all of them.  Of the nodes that could come next, the one with the
smallest key does; what a key says is up to the caller.

`torch.compile` and `torch.export` use torch.fx's version for their graphs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable
from typing import Final, TypeAlias

from ..extra.effects.effects import effect_by_name
from ..graph import Graph
from ..linked_list.namespace import Namespace, target_to_str
from ..node import Node
from ..use_def.values import AnyValue
from .tools_common import CALLABLE_NODE_OPS, Pair, topological_order
from .utils.call_order import around

__all__ = ["canonicalize_graph", "rename_nodes_to_canonical"]

Places: TypeAlias = dict[Node, int]
"""Node -> its place in the new order, as far as that is known."""

_NO_OPS: Final[frozenset[str]] = frozenset()


def canonicalize_graph(
    graph: Graph,
    canonical_key_fn: Callable[[Node, Places], AnyValue],
    is_safe_to_reorder: Callable[[Node], bool],
    *,
    skip_rename_ops: frozenset[str] = _NO_OPS,
    group_getitems: bool = False,
) -> dict[str, str]:
    """Put the nodes into an order that depends on keys alone; rename them.

    Each node stays behind its inputs, and the output is the last.  A call that
    must not be reordered stays where it is among all calls: no other one comes
    to its other side.  Attributes are fetched right before their first use.
    Nodes are moved, not copied, so that references to them stay valid.

    Args:
        graph: changed in place; recompile its module, if it has one.
        canonical_key_fn: called with a node, other than the output, whose
            inputs have their places, and with the places that are known.
            Returns the key: of the nodes that can come next, the one with the
            smallest key does, or of equal keys the one that could first.
        is_safe_to_reorder: whether a call may change places with others.
        skip_rename_ops: opcodes of nodes that keep their names.
        group_getitems: put each getitem right behind the node that it takes
            an item of, in the order of their indices, as a graph that was
            saved by torch.export has them; but not to the other side of a
            call that must not be reordered.

    Returns:
        Old name -> new name, of the nodes that were renamed.

    Raises:
        RuntimeError: some nodes wait for each other; nothing is changed.

    Cost: O(uses + nodes · log nodes), and the calls of both functions.

    torch.fx: passes/canonicalize.py, canonicalize_graph
    """
    calls = [node for node in graph.nodes if node.op in CALLABLE_NODE_OPS]
    fences = {node for node in calls if not is_safe_to_reorder(node)}
    order = _by_key(graph, around(calls, fences), canonical_key_fn)
    order = _fetched_late(order)
    if group_getitems:
        order = _items_together(order, fences)
    last = graph._root  # noqa: SLF001
    for node in order:
        if last.next is not node:
            last.append(node)
        last = node
    return rename_nodes_to_canonical(graph, skip_rename_ops)


def rename_nodes_to_canonical(
    graph: Graph, skip_ops: frozenset[str] = _NO_OPS
) -> dict[str, str]:
    """Name each node after its target, as if it had just been made.

    Args:
        graph: changed in place; recompile its module, if it has one.
        skip_ops: opcodes of nodes that keep their names, which no other node
            gets.

    Returns:
        Old name -> new name, of the nodes that were renamed.

    Cost: O(nodes), and the replace hooks of the owning module.

    torch.fx: passes/canonicalize.py, rename_nodes_to_canonical
    """
    names = Namespace()
    for node in graph.nodes:
        if node.op in skip_ops:
            names.create_name(node.name, node)
    renamed: dict[str, str] = {}
    for node in graph.nodes:
        if node.op not in skip_ops:
            old = node.name
            new = names.create_name(target_to_str(node.target), node)
            if new != old:
                node.name = renamed[old] = new
    graph._graph_namespace = names  # noqa: SLF001
    return renamed


# -- keys and barriers ---------------------------------------------------------


def _canonical_node_key(node: Node, canonical_idx: Places) -> AnyValue:
    """A key by kind, target and inputs, for all nodes but placeholders.

    Dynamo uses this key.

    Raises:
        AssertionError: the node is a placeholder. Which of them comes first is
            part of a signature, and the caller's to say.

    torch.fx: passes/canonicalize.py, _canonical_node_key
    """
    if node.op == "placeholder":
        raise AssertionError("callers must handle placeholder nodes themselves")
    if node.op == "get_attr":
        return 1, str(node.target)
    if node.op == "output":
        return (3,)
    inputs = tuple([canonical_idx[value] for value in node.all_input_nodes])
    return 2, target_to_str(node.target), inputs


def _is_safe_to_reorder(node: Node) -> bool:
    """Whether a call is known to have no effect.

    The object of a method is taken for a tensor.

    torch.fx: passes/canonicalize.py, _is_safe_to_reorder; it guesses by names,
    and by notes that Dynamo leaves.
    """
    if node.op not in CALLABLE_NODE_OPS:
        return True
    return effect_by_name(node).kind == "pure"


# -- the order -----------------------------------------------------------------


def _by_key(
    graph: Graph, pairs: Iterable[Pair], key: Callable[[Node, Places], AnyValue]
) -> list[Node]:
    """The nodes by their keys, each behind its inputs, the output last.

    Args:
        graph: has the nodes.
        pairs: of nodes, of which the first must come before the second.
        key: see `canonicalize_graph`.
    """
    ends = graph.find_nodes(op="output")
    nodes = [node for node in graph.nodes if node.op != "output"]
    behind = {
        node: [user for user in node.users if user.op != "output"]
        for node in nodes
    }
    waits = {node: len(node.all_input_nodes) for node in nodes}
    for first, second in pairs:
        behind[first].append(second)
        waits[second] += 1
    order = topological_order(waits, behind, key)
    left = [node for node in nodes if waits[node]]
    if left:
        raise RuntimeError(
            f"Canonicalization failed: processed {len(order)} of "
            f"{len(graph.nodes)} nodes. Remaining: {left}, which wait for each "
            "other, or for a node that is not in the graph: graph.lint() says "
            "more"
        )
    return [*order, *ends]


def _fetched_late(order: list[Node]) -> list[Node]:
    """An order in which attributes are fetched right before their first use.

    They need nothing, and would all come first otherwise.  What is not used is
    fetched before the output.
    """
    places = {node: place for place, node in enumerate(order)}
    end = len(order) - (order[-1:] != [] and order[-1].op == "output")
    fetched: dict[int, list[Node]] = {}
    for node in order:
        if node.op == "get_attr":
            first = min(map(places.__getitem__, node.users), default=end)
            fetched.setdefault(first, []).append(node)
    late: list[Node] = []
    for place, node in enumerate(order):
        if node.op != "get_attr":
            late += [*fetched.get(place, ()), node]
    return late + fetched.get(len(order), [])


def _items_together(order: list[Node], fences: Collection[Node]) -> list[Node]:
    """An order with each getitem behind the node that it takes an item of.

    Of a list that is a matter of taste.  But `x[[0, 1]]` is a copy, and a copy
    from before a write is another than one from behind it.

    Args:
        order: the nodes.
        fences: those that no getitem passes.
    """
    before = 0
    passed: dict[Node, int] = {}
    for node in order:
        before += node in fences
        passed[node] = before
    items: dict[Node, list[Node]] = {}
    for node in order:
        of = node.all_input_nodes
        # Where an index is a node, that comes in between.
        alone = node.target is operator.getitem and len(of) == 1
        if (
            alone
            and node.args[:1] == (of[0],)
            and passed[of[0]] == passed[node]
        ):
            items.setdefault(of[0], []).append(node)
    moved = {item for group in items.values() for item in group}
    together: list[Node] = []
    for node in order:
        ahead = [] if node in moved else [node]
        while ahead:
            together.append(taken := ahead.pop())
            ahead += sorted(items.get(taken, ()), key=_index)[::-1]
    return together


def _index(node: Node) -> tuple[bool, int, str]:
    """What sorts getitems: numbers first, in their order."""
    index = node.args[1]
    if isinstance(index, int):
        return False, index, ""
    return True, 0, str(index)
