"""Using fx: save a graph as data, and load it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from torch import nn

import fx


class Scale(nn.Module):
    """A module of your own, which is one node here."""

    def __init__(self) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.full((4,), 2.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x, scaled."""
        return x * self.factor


class Net(nn.Module):
    """A layer of torch, and one of your own."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.scale = Scale()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Both."""
        return torch.relu(self.scale(self.linear(x)))


class Keeping(fx.Tracer):
    """Does not trace into Scale."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Is it Scale, or a module of torch?"""
        return isinstance(m, Scale) or super().is_leaf_module(
            m, module_qualified_name
        )


def mine(x: torch.Tensor) -> torch.Tensor:
    """A function of your own."""
    return x * 3


def main() -> None:
    """What the file says, what it takes to load it, what must be allowed."""
    model, x = Net(), torch.ones(2, 4)
    gm = fx.GraphModule(model, Keeping().trace(model))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "gm")
        fx.save(gm, path)
        for line in (path / "graph.jsonl").read_text().splitlines()[-3:]:
            print(line[:72])
        try:
            fx.load(path)
        except fx.LoadError as error:
            print("without a root:", type(error).__name__)
        loaded = fx.load(path, root=Net())
        print("with a root, the same:", torch.equal(loaded(x), gm(x)))

        output = gm.graph.output_node()
        with gm.graph.inserting_before(output):
            output.args = (gm.graph.call_function(mine, (output.args[0],)),)
        gm.recompile()
        try:
            fx.save(gm, path)
        except ValueError as error:
            print(error)
        fx.save(gm, path, allow=[mine])
        loaded = fx.load(path, root=Net(), allow=[mine])
        print("the same:", torch.equal(loaded(x), gm(x)))
