"""What one can see once an exercise of stage 06 is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch

from fx._symbolic_trace import symbolic_trace
from fx.interpreter import Interpreter, Transformer
from fx.linked_list.opcodes import Target
from fx.node import Node
from fx.passes.shape_prop import ShapeProp
from fx.use_def.values import AnyValue, Argument
from stages.residual import Residual


class Watch(Interpreter):
    """Notes before each node which values are alive."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__(module)
        self.said: list[str] = []

    def run_node(self, n: Node) -> AnyValue:
        """Note it, then run the node."""
        alive = ", ".join(str(node) for node in self.env)
        self.said.append(f"{n.name:7} alive: {alive or 'nothing'}")
        return super().run_node(n)


class Gelu(Transformer):
    """Puts gelu in the place of relu."""

    def call_function(
        self, target: Target, args: tuple[Argument, ...], kwargs: AnyValue
    ) -> AnyValue:
        """Record a gelu for a relu, anything else as it is."""
        if target is torch.relu:
            target = torch.nn.functional.gelu
        return super().call_function(target, args, kwargs)


def fetched() -> str:
    """A dotted path leads to a parameter."""
    found = Interpreter(symbolic_trace(Residual())).fetch_attr("linear.weight")
    return f"linear.weight is a {type(found).__name__} of {tuple(found.shape)}"


def run() -> str:
    """A graph is run node by node."""
    watch = Watch(symbolic_trace(Residual()))
    watch.run(torch.ones(2, 4))
    return "\n".join(watch.said)


def shapes() -> str:
    """What each value is."""
    traced = symbolic_trace(Residual())
    ShapeProp(traced).propagate(torch.ones(2, 4))
    known = {node: node.meta["tensor_meta"] for node in traced.graph.nodes}
    return ", ".join(f"{node} {[*one.shape]}" for node, one in known.items())


def transformed() -> str:
    """The code of a module in which relu is gelu."""
    return Gelu(symbolic_trace(Residual())).transform().code.strip()


SEE: Final[dict[str, Callable[[], str]]] = {
    "Interpreter.fetch_attr": fetched,
    "loop": run,
    "ShapeProp.run_node": shapes,
    "Transformer.transform": transformed,
}
"""An exercise -> what it can do now."""
