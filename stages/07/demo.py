"""Stage 07's demo: relu(a + b) in a Residual, replaced by one call."""

from __future__ import annotations

import torch

from fx._symbolic_trace import symbolic_trace
from fx.subgraph_rewriter import replace_pattern
from stages.residual import Residual


def relu_of_sum(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """What to look for."""
    return torch.relu(a + b)


def clamp_of_sum(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """What to put there."""
    return torch.clamp(torch.add(a, b), min=0.0)


def main() -> None:
    """Rewrite, and compare the results."""
    torch.manual_seed(0)
    model = Residual()
    gm = symbolic_trace(model)
    print("before:")
    print(gm.code.strip())

    matches = replace_pattern(gm, relu_of_sum, clamp_of_sum)
    print(f"\n{len(matches)} match: pattern -> graph")
    for sought, found in matches[0].nodes_map.items():
        print(f"  {sought!s:5} -> {found}")
    print("\nafter:")
    print(gm.code.strip())

    x = torch.randn(2, 4)
    agrees = torch.equal(gm(x), model(x))
    print(f"\nsame results as before: {agrees}")


if __name__ == "__main__":
    main()
