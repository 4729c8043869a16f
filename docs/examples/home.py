"""A whole program: trace a function, edit its graph, see its code."""

from __future__ import annotations

import torch
from torch import Tensor

import fx


def block(x: Tensor, weight: Tensor) -> Tensor:
    return torch.relu(x @ weight + x)


def main() -> None:
    gm = fx.symbolic_trace(block)
    print(gm.graph)
    for node in gm.graph.find_nodes(op="call_function", target=torch.relu):
        node.target = torch.tanh
    gm.recompile()
    print(gm.code)


if __name__ == "__main__":
    main()
