"""A small forward to change and to trace again."""

from __future__ import annotations

import torch
from torch import Tensor

import fx


def forward(x: Tensor, y: Tensor) -> Tensor:
    scaled = x * 2
    return torch.relu(scaled + y)


def main() -> None:
    gm = fx.symbolic_trace(forward)
    print(gm.graph)
    fx.show(gm, torch.ones(2, 3), torch.ones(3))


if __name__ == "__main__":
    main()
