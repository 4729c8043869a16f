"""A choice for stage 07: at which node the pattern is anchored.

It does without `from __future__ import annotations`, because generated code
repeats the annotations.
"""

import torch
from torch import Tensor

from docs.machinery.film import Choices, Film
from fx._symbolic_trace import symbolic_trace
from fx.graph import Graph
from fx.node import Node
from fx.passes.utils.matcher_utils import Search, SubgraphMatcher
from fx.subgraph_rewriter import replace_pattern_with_filters


def pattern(a: Tensor, b: Tensor) -> Tensor:
    """What to look for."""
    return torch.relu(a + b)


def replacement(a: Tensor, b: Tensor) -> Tensor:
    """What to put there."""
    return torch.clamp(torch.add(a, b), min=0.0)


def program(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Three relus: of a sum, of a sum that is returned, of a product."""
    total = torch.relu(x + y) + x
    return torch.relu(torch.relu(total) * 2), total


def choices() -> Choices:
    """Each node as the anchor: match, or the reason why not, and rewrite."""
    asked = Choices("relu(a + b): where is its relu anchored?")
    for node in symbolic_trace(program).graph.nodes:
        if node.op == "call_function":
            anchored(asked.option(str(node)), str(node))
    return asked


def anchored(film: Film, name: str) -> None:
    """Look for the pattern at one node, and replace it if it is there."""
    gm = symbolic_trace(program)
    matcher = SubgraphMatcher(symbolic_trace(pattern).graph)
    node = named(gm.graph, name)
    (anchor,) = matcher.pattern_anchors
    search = Search(matcher, gm.graph, keep=True)
    match = search.found() if search.match_from(anchor, node) else None
    film.graph("Before.", gm.graph, code=gm.code)
    if match is None:
        tried = search.mismatches[-1]
        say = (
            f"Refused: {tried.reason} ({tried.pattern} in the pattern, "
            f"{tried.found} in the graph). Nothing is rewritten."
        )
        film.graph(say, gm.graph, code=gm.code, look=[name])
        return
    replace_pattern_with_filters(
        gm,
        pattern,
        replacement,
        match_filters=[
            lambda match, graph, wanted: node in match.returning_nodes
        ],
    )
    found = " and ".join(map(str, reversed(match.operations())))
    inputs = ", ".join(str(one) for one in match.placeholder_nodes)
    say = f"A match of {found}, where a, b are {inputs}. It is replaced."
    film.graph(say, gm.graph, code=gm.code)


def named(graph: Graph, name: str) -> Node:
    """The node of that name."""
    return next(node for node in graph.nodes if node.name == name)
