"""A module is traced into, and a module of torch.nn is one node."""

from __future__ import annotations

from torch import Tensor, nn

import fx


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.drop(self.linear(x))
        return x


class Leafy(fx.Tracer):
    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return super().is_leaf_module(m, module_qualified_name)


def main() -> None:
    model = nn.Sequential(Block(), Block())
    graph = Leafy().trace(model)
    print(graph)


if __name__ == "__main__":
    main()
