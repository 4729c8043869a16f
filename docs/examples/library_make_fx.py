"""Using fx: capture a training step, and do it in place."""

from __future__ import annotations

import torch
from torch.nn import functional

from fx.experimental.proxy_tensor import make_fx
from fx.passes.reinplace import reinplace, reinplace_report


def step(weight: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """One step of gradient descent."""

    def loss(w: torch.Tensor) -> torch.Tensor:
        return functional.linear(x, w).tanh().square().mean()

    gradient: torch.Tensor = torch.func.grad(loss)(weight)
    return weight - 0.1 * gradient


def main() -> None:
    """Forward and backward in one graph; then in less memory."""
    torch.manual_seed(0)
    inputs = torch.randn(3, 4), torch.randn(8, 4)
    gm = make_fx(torch.func.functionalize(step))(*inputs)
    report = reinplace_report(gm, *inputs)
    print(report)
    reinplace(gm, *inputs)
    print()
    print(gm.code.strip())
    print()
    print("the same:", torch.equal(gm(*inputs), step(*inputs)))
