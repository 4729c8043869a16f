"""Stage 07, step by step: what replace_pattern does, done by hand."""

from __future__ import annotations

import torch
from torch import Tensor

from docs.machinery.film import Arc, Film, Row, call_text
from fx._symbolic_trace import symbolic_trace
from fx.graph import Graph
from fx.node import Node
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
    wanted = symbolic_trace(Residual())
    replace_pattern(wanted, pattern, replacement)
    graph = symbolic_trace(Residual()).graph
    steps = Steps(graph)
    steps.match()
    steps.splice()
    if str(graph) != str(wanted.graph):
        raise AssertionError(f"replace_pattern gives {wanted.graph}")
    return steps.film


class Steps:
    """The pattern's nodes above those of the graph; pairs have a number."""

    def __init__(self, graph: Graph) -> None:
        self.film = Film(
            "docs.examples.steps_07.pattern",
            rows="Pattern and graph",
            code="Replacement",
        )
        self.graph = graph
        self.wanted = symbolic_trace(pattern).graph
        (self.found,) = SubgraphMatcher(self.wanted).match(graph)
        self.pairs: dict[Node, str] = {}

    def shoot(self, say: str, at: str | None = None) -> None:
        """Take a shot of both graphs."""
        rows, arcs = [], []
        sides = (("pattern ", self.wanted), ("", self.graph))
        for side, graph in sides:
            for node in graph.nodes:
                if side and node.op == "output":
                    continue
                note = self.pairs.get(node, "")
                rows.append(Row(side + node.name, call_text(node), note))
                arcs += [
                    Arc(side + one.name, side + node.name)
                    for one in node.all_input_nodes
                ]
        code = symbolic_trace(replacement).code
        self.film.shot(say, rows, arcs, at=at, code=code)

    def pair(self, number: str, name: str) -> None:
        """Number a node of the pattern, and its partner."""
        (node,) = [one for one in self.wanted.nodes if one.name == name]
        self.pairs[node] = self.pairs[self.found.nodes_map[node]] = number

    def match(self) -> None:
        """From the last node of the pattern to its operands."""
        self.shoot("The pattern is traced, too, to a graph of its own.")
        self.pair("1", "relu")
        self.shoot(
            "The last node of the pattern is paired with a node of the same "
            "target.",
            "torch.relu(a + b)",
        )
        self.pair("2", "add")
        self.shoot(
            "Then their operands are paired. No node outside of the match "
            "uses add, so it may be erased.",
            "a + b)",
        )
        self.pair("3", "a")
        self.pair("4", "b")
        self.shoot("A placeholder is paired with whatever stands there.")

    def splice(self) -> None:
        """Put the replacement in, on the graph itself."""
        a, b = self.found.placeholder_nodes
        (anchor,) = self.found.returning_nodes
        matched = self.found.nodes_map.values()
        old = {node for node in matched if node.op == "call_function"}
        new = symbolic_trace(replacement).graph
        inputs = new.find_nodes(op="placeholder")
        values = dict(zip(inputs, (a, b), strict=True))
        with self.graph.inserting_before(anchor):
            result = self.graph.graph_copy(new, values)
        self.shoot(
            "The replacement is copied in before relu, with linear and x in "
            "place of a and b."
        )
        anchor.replace_all_uses_with(result)
        self.shoot("Every use of relu becomes a use of clamp.")
        for node in sorted(old, reverse=True):
            self.graph.erase_node(node)
        self.shoot("The old nodes are unused, and are erased.")
