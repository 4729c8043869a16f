"""In a page: which calls must stay in order though no value goes between them.

It stands in for fx/passes/utils/call_order.py, which asks what memory a call
writes: here a call with an effect stays in its place among all calls.
"""

from __future__ import annotations

from collections.abc import Iterator

from fx.graph import Graph
from fx.node import Node


def kept_in_order(graph: Graph) -> Iterator[tuple[Node, Node]]:
    """Pairs of calls, the earlier one first, that must not change places."""
    stays = Graph._dead_code_rule.must_keep("keep", None)  # noqa: SLF001
    calls = [node for node in graph.nodes if node.op.startswith("call")]
    for at, node in enumerate(calls):
        if stays(node):
            yield from ((before, node) for before in calls[:at])
            yield from ((node, after) for after in calls[at + 1 :])
