"""Using fx: what a pass changed, and which call a backend gets wrong."""

from __future__ import annotations

import torch

import fx
from fx.passes.narrow_down import narrow_down


def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Something to run in two ways."""
    gate = torch.sigmoid(x + y)
    return torch.tanh(gate * x - y).sum()


def backend(gm: fx.GraphModule) -> fx.GraphModule:
    """A compiler with a fault: it knows a cheaper sigmoid."""
    fx.replace_pattern(
        gm,
        lambda x: torch.sigmoid(x),
        lambda x: (x / 4 + 0.5).clamp(0, 1),
    )
    return gm


def main() -> None:
    """Compare the graphs, then the results."""
    gm = fx.symbolic_trace(program)
    print(fx.diff(gm, backend(fx.symbolic_trace(program))))
    inputs = [torch.ones(2), torch.ones(2)]
    print(narrow_down(gm, inputs, backend, atol=1e-3))
