"""A graph is edited, and its code is written again."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

import fx


def forward(x: Tensor, y: Tensor) -> Tensor:
    scaled = x * 2
    return torch.relu(scaled + y)


def main() -> None:
    gm = fx.symbolic_trace(forward)
    for node in gm.graph.nodes:
        if node.target is torch.relu:
            node.target = functional.gelu
    gm.recompile()
    print(gm.code)


if __name__ == "__main__":
    main()
