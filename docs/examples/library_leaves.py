"""Using fx: decide what is one node, and what is traced into."""

from __future__ import annotations

import torch
from torch import nn

import fx
from stages.residual import Residual


@fx.wrap
def clip(x: torch.Tensor, low: float) -> torch.Tensor:
    """Looks at its values, so it cannot be traced."""
    return x if bool((x >= low).all()) else x.clamp(min=low)


class Net(nn.Module):
    """Two blocks, and a function of our own."""

    def __init__(self) -> None:
        super().__init__()
        self.first = Residual()
        self.second = Residual()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.second(self.first(x))
        return clip(y, 0.5)


class BlockTracer(fx.Tracer):
    """Takes a Residual for one operation."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, Residual) or super().is_leaf_module(
            m, module_qualified_name
        )


def main() -> None:
    """The same module, seen at two levels."""
    net = Net()
    print(fx.symbolic_trace(net).code.strip(), end="\n\n")
    graph = BlockTracer().trace(net)
    gm = fx.GraphModule(net, graph)
    print(gm.code.strip())
    print("clipped:", bool((gm(torch.zeros(1, 4)) >= 0.5).all()))
