"""The home page, step by step: a module, its graph, its code, an edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from docs.examples.steps_05 import lines_until
from docs.machinery.film import Film, Spot, code_of, frame_spot
from fx.graph import Graph
from fx.node import Node
from fx.tracing.tracer import Tracer
from stages.residual import Residual

AnyValue: TypeAlias = Any
"""What a program passes to a call: anything."""

SAY = {
    "x": "fx calls forward with a proxy, an object that records what is done "
    "with it. The argument x becomes the first node of the graph.",
    "linear": "The layer is called with the proxy. Nothing is computed: the "
    "call becomes a node, and a line of code can be written for it.",
    "add": "Now y + x becomes the node add. The arrows say whose results it "
    "uses.",
    "relu": "The call of torch.relu becomes a node, whose argument is the node "
    "add.",
    "output": "forward returns, and the graph is complete. Its code computes "
    "what the module does.",
}


@dataclass
class Prefix:
    """The first nodes of a graph."""

    nodes: list[Node]


class Watching(Tracer):
    """A tracer that notes which expression makes each node."""

    def __init__(self) -> None:
        super().__init__()
        self.spots: dict[str, Spot | str | None] = {}

    def create_node(self, *args: AnyValue, **kwargs: AnyValue) -> Node:
        """Make the node, and note where forward is."""
        node = super().create_node(*args, **kwargs)
        spot: Spot | str | None = frame_spot(code_of(Residual.forward))
        if node.op == "placeholder":
            spot = "x: torch.Tensor"
        elif node.op == "output":
            spot = "return torch.relu(y + x)"
        self.spots[node.name] = spot
        return node


def film() -> Film:
    """Residual is traced and written, then edited and written again."""
    steps = Film("stages.residual.Residual.forward", code="Its code")
    steps.rows = "Its graph"
    tracer = Watching()
    graph = tracer.trace(Residual())
    for number, node in enumerate(graph.nodes):
        steps.graph(
            SAY[node.name],
            Prefix(list(graph.nodes)[: number + 1]),
            at=tracer.spots[node.name],
            code=lines_until(graph, number),
        )
    edit(graph)
    steps.graph(
        "Now change the program: one node calls tanh instead. The code "
        "follows, and nobody has touched the module's source.",
        graph,
        code=lines_until(graph, len(graph.nodes)),
    )
    return steps


def edit(graph: Graph) -> None:
    """Let tanh be called instead of relu."""
    for node in graph.find_nodes(op="call_function", target=torch.relu):
        node.target = torch.tanh
