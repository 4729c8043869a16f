"""Stage 06, step by step: a graph is run node by node."""

from __future__ import annotations

from typing import Any, TypeAlias

import torch

from docs.machinery.film import Film
from fx._symbolic_trace import symbolic_trace
from fx.graph_module import GraphModule
from fx.interpreter import Interpreter
from fx.node import Node
from stages.residual import Residual

AnyValue: TypeAlias = Any
"""What a node computes: anything."""

SAY = {
    "placeholder": "The caller's argument becomes the value of x.",
    "call_module": "linear is run on the value of x.",
    "call_function": "The values of the arguments are fetched, and the "
    "function is called with them.",
    "output": "The value of relu is what run() returns.",
}


class Watching(Interpreter):
    """An interpreter that takes a shot before each node."""

    def __init__(self, module: GraphModule, film: Film) -> None:
        super().__init__(module)
        self.film = film

    def run_node(self, n: Node) -> AnyValue:
        """Take a shot of what is known, then run the node."""
        self.shoot(f"Next: {n.name}. {SAY[n.op]}", n)
        return super().run_node(n)

    def shoot(self, say: str, node: Node | None) -> None:
        """A shot of the values that are there."""
        notes = {
            known.name: f"tensor of {list(value.shape)}"
            for known, value in self.env.items()
            if isinstance(value, torch.Tensor)
        }
        look = [node.name] if node else []
        self.film.graph(say, self.graph, notes=notes, look=look)


def film() -> Film:
    """Values appear as they are computed, and go after their last use."""
    torch.manual_seed(0)
    steps = Film(rows="Nodes, and the values that are kept")
    watching = Watching(symbolic_trace(Residual()), steps)
    watching.run(torch.randn(2, 4))
    watching.shoot("The run is over; only what it returns is left.", None)
    return steps
