"""Stages 03 and 04, step by step: Residual is traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch

from docs.machinery.film import Film, Spot, code_of, frame_spot
from fx.graph import Graph
from fx.node import Node
from fx.tracing.tracer import Tracer
from stages.residual import Residual

AnyValue: TypeAlias = Any
"""What a program passes to a call: anything."""

SAY = {
    "placeholder": "Before forward runs, each of its arguments becomes a node; "
    "forward is called with a proxy of it.",
    "call_module": "A module is called with a proxy. It is a leaf, so the "
    "call itself is recorded and its forward is not entered.",
    "call_function": "forward runs on proxies. The marked operation becomes a "
    "node, and its result is a new proxy.",
    "output": "What forward returns becomes the output.",
}


class Watching(Tracer):
    """A tracer that takes a shot whenever a node is made."""

    def __init__(self, film: Film, forward: Callable[..., object]) -> None:
        super().__init__()
        self.film = film
        self.code = code_of(forward)

    def create_node(self, *args: AnyValue, **kwargs: AnyValue) -> Node:
        """Make the node, and take a shot of the graph with it."""
        node = super().create_node(*args, **kwargs)
        at: Spot | str | None = frame_spot(self.code)
        if node.op == "placeholder":
            at = "x: torch.Tensor"
        elif node.op == "output":
            at = "return torch.relu(y + x)"
        self.film.graph(SAY[node.op], self.graph, at=at)
        return node


def film() -> Film:
    """Run forward once; each operation leaves a node."""
    torch.manual_seed(0)
    steps = Film("stages.residual.Residual.forward")
    steps.graph("The graph is empty; forward has not run.", Graph())
    Watching(steps, Residual.forward).trace(Residual())
    return steps
