"""Stage 07, step by step: what replace_pattern does, done by hand."""

from __future__ import annotations

import torch
from torch import Tensor

from docs.machinery.film import Film
from fx._symbolic_trace import symbolic_trace
from fx.graph import Graph
from fx.passes.utils.matcher_utils import SubgraphMatcher
from fx.subgraph_rewriter import replace_pattern
from stages.residual import Residual


def pattern(a: Tensor, b: Tensor) -> Tensor:
    """What to look for."""
    return torch.relu(a + b)


def replacement(a: Tensor, b: Tensor) -> Tensor:
    """What to put there."""
    return torch.clamp(torch.add(a, b), min=0.0)


def film() -> Film:
    """Match, copy the replacement, redirect the uses, erase the old."""
    steps = Film("docs.examples.steps_07.pattern")
    wanted = symbolic_trace(Residual())
    replace_pattern(wanted, pattern, replacement)
    graph = symbolic_trace(Residual()).graph
    steps.graph(
        "The nodes are those of the graph that is searched. The pattern "
        "beside it is traced, too, to a graph of its own.",
        graph,
    )
    splice(steps, graph)
    if str(graph) != str(wanted.graph):
        raise AssertionError(f"replace_pattern gives {wanted.graph}")
    return steps


def splice(steps: Film, graph: Graph) -> None:
    """The four steps, each on the graph itself."""
    matcher = SubgraphMatcher(symbolic_trace(pattern).graph)
    (match,) = matcher.match(graph)
    a, b = match.placeholder_nodes
    (anchor,) = match.returning_nodes
    old = [node for node in match.nodes_map.values() if node not in (a, b)]
    old = [node for node in old if node.op == "call_function"]
    steps.graph(
        "add and relu match; a is paired with linear, b with x. No node "
        "outside of the match uses add, so it may be erased.",
        graph,
        at="torch.relu(a + b)",
        look=[node.name for node in old],
    )
    new = symbolic_trace(replacement).graph
    values = dict(zip(new.find_nodes(op="placeholder"), (a, b), strict=True))
    with graph.inserting_before(anchor):
        result = graph.graph_copy(new, values)
    steps.graph(
        "The replacement, clamp(add(a, b), min=0.0), is copied in before "
        "relu, with linear and x in place of a and b.",
        graph,
    )
    anchor.replace_all_uses_with(result)
    steps.graph("Every use of relu becomes a use of clamp.", graph)
    for node in sorted(set(old), reverse=True):
        graph.erase_node(node)
    steps.graph("The old nodes are unused, and are erased.", graph)
