"""The one-page fx traces a module."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from docs.examples.tiny_fx import code, trace


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.linear(x) + x)


def main() -> None:
    graph = trace(Residual())
    print(graph)
    print(code(graph))


if __name__ == "__main__":
    main()
