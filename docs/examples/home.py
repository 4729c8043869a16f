"""All of it in ten lines: trace a module, edit its graph, see its code."""

from __future__ import annotations

import torch

import fx
from stages.residual import Residual


def main() -> None:
    """Trace Residual, and let it end in tanh instead of relu."""
    gm = fx.symbolic_trace(Residual())
    print(gm.graph)

    for node in gm.graph.nodes:
        if node.target is torch.relu:
            node.target = torch.tanh
    gm.recompile()
    print("\nafter the edit, its code is:")
    print(gm.code.strip())


if __name__ == "__main__":
    main()
