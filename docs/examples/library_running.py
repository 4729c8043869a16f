"""Using fx: run a graph node by node, and record it anew."""

from __future__ import annotations

import torch

import fx
from fx.node import Target
from fx.passes.shape_prop import ShapeProp
from fx.use_def.values import AnyValue
from stages.residual import Residual


class Largest(fx.Interpreter):
    """Runs a module and prints the largest number of each value."""

    def run_node(self, n: fx.Node) -> AnyValue:
        value = super().run_node(n)
        if isinstance(value, torch.Tensor):
            print(f"  {n.name:7} at most {value.max().item():.2f}")
        return value


class Clipped(fx.Transformer):
    """Records a module anew, with a clip behind each relu."""

    def call_function(
        self,
        target: Target,
        args: tuple[AnyValue, ...],
        kwargs: dict[str, AnyValue],
    ) -> AnyValue:
        value = super().call_function(target, args, kwargs)
        return value.clamp(max=1) if target is torch.relu else value


def main() -> None:
    """Three ways to run Residual's graph."""
    torch.manual_seed(0)
    gm, x = fx.symbolic_trace(Residual()), torch.randn(2, 4)
    Largest(gm).run(x)
    clipped = Clipped(gm).transform()
    print()
    print(clipped.code.strip())
    print("the largest now:", clipped(x).max().item())
    print()
    ShapeProp(gm).propagate(x)
    for node in gm.graph.nodes:
        found = node.meta["tensor_meta"]
        print(f"  {node.name:7} {tuple(found.shape)} {found.dtype}")
