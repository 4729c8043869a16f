"""Stage 08's demo: a Residual as ATen operators, then done in place."""

from __future__ import annotations

import torch

from fx.experimental.proxy_tensor import make_fx
from fx.graph_module import GraphModule
from fx.passes.reinplace import reinplace, reinplace_report
from stages.residual import Residual


def captured(model: Residual, x: torch.Tensor) -> GraphModule:
    """The operators that a model runs, as a function without side effects."""
    return make_fx(torch.func.functionalize(model))(x)


def main() -> None:
    """Capture, reinplace, and say for each operator why or why not."""
    torch.manual_seed(0)
    model, x = Residual(), torch.randn(2, 4)
    with torch.no_grad():
        gm = captured(model, x)
        print("captured:")
        print(gm.code.strip())

        print("\nwhat reinplace will do:")
        print(reinplace_report(gm, x))

        reinplace(gm, x)
        print("\nafter reinplace:")
        print(gm.code.strip())
        before = x.clone()
        agrees = torch.equal(gm(x), model(x))
        print(f"\nsame result: {agrees}; x untouched: {x.equal(before)}")

    print("\nthe same where autograd needs the old values:")
    print(reinplace_report(captured(model, x), x))


if __name__ == "__main__":
    main()
