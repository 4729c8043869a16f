"""Equal calls, of which some can be one and some cannot."""

from __future__ import annotations

import torch

import fx
from fx.passes.dialect.common.cse_pass import CSEPass


def program(x: torch.Tensor) -> torch.Tensor:
    """Three times the same call, with a write before the last."""
    y = x + 1
    first = torch.exp(y)
    again = torch.exp(y)
    y.add_(1)
    later = torch.exp(y)
    return first * again * later


def main() -> None:
    """Let equal calls be one, and print what is left."""
    result = CSEPass().call(fx.symbolic_trace(program))
    for node in result.graph_module.graph.nodes:
        print(node.format_node())


if __name__ == "__main__":
    main()
