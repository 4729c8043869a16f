"""Stage 06: a graph run node by node: watched, described, and rewritten."""

from __future__ import annotations

import torch

from fx._symbolic_trace import symbolic_trace
from fx.interpreter import Interpreter, Transformer
from fx.linked_list.opcodes import Target
from fx.node import Node
from fx.passes.shape_prop import ShapeProp
from fx.use_def.values import AnyValue, Argument
from stages.residual import Residual


class Watch(Interpreter):
    """Says before each node which values are alive."""

    def run_node(self, n: Node) -> AnyValue:
        """Say it, then run the node."""
        alive = ", ".join(str(node) for node in self.env)
        print(f"  {n.op:13} {n.name:7} alive: {alive or 'nothing'}")
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


def main() -> None:
    """Run the Residual in three ways."""
    torch.manual_seed(0)
    model, x = Residual(), torch.randn(2, 4)
    traced = symbolic_trace(model)

    print("An Interpreter runs one node after the other:")
    found = Watch(traced).run(x)
    print("as eager:", torch.equal(found, model(x)))

    print("\nShapeProp writes down what each value is:")
    ShapeProp(traced).propagate(x)
    for node in traced.graph.nodes:
        known = node.meta["tensor_meta"]
        print(f"  {node.name:7} {list(known.shape)} {known.dtype}")

    print("\nA Transformer runs with proxies, and records another graph:")
    new = Gelu(traced).transform()
    print(new.graph)
    wanted = torch.nn.functional.gelu(model.linear(x) + x)
    print("gelu(linear(x) + x):", torch.equal(new(x), wanted))
    print("the old one is as it was:", torch.equal(traced(x), model(x)))


if __name__ == "__main__":
    main()
