"""A choice for stage 04: which modules are leaves.

It does without `from __future__ import annotations`, because generated code
repeats the annotations.
"""

import torch

from docs.machinery.film import Choices
from fx.graph_module import GraphModule
from fx.tracing.tracer import Tracer
from stages.residual import Residual


class Net(torch.nn.Module):
    """A module in a module."""

    def __init__(self) -> None:
        super().__init__()
        self.block = Residual()
        self.last = torch.nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """last(block(x))."""
        y: torch.Tensor = self.last(self.block(x))
        return y


class Chosen(Tracer):
    """A tracer with the leaves that it is given; None for the usual ones."""

    def __init__(self, leaves: set[str] | None) -> None:
        super().__init__()
        self.leaves = leaves

    def is_leaf_module(self, m: torch.nn.Module, name: str) -> bool:
        """Whether the module's path was chosen."""
        if self.leaves is None:
            return super().is_leaf_module(m, name)
        return name in self.leaves


LEAVES: dict[str, tuple[set[str] | None, str]] = {
    "as usual": (
        None,
        "Modules of torch.nn are leaves, and Residual is traced through.",
    ),
    "block and last": (
        {"block", "last"},
        "Nothing inside Residual is recorded, only that it is called.",
    ),
    "last": (
        {"last"},
        "Inside block.linear, too, what forward does is recorded: it reads "
        "two parameters and calls torch.nn.functional.linear.",
    ),
    "none": (set(), "Only functions and parameters are left."),
}


def choices() -> Choices:
    """Net, traced with each set of leaves."""
    asked = Choices("Which modules are leaves?")
    net = Net()
    for label, (leaves, say) in LEAVES.items():
        graph = Chosen(leaves).trace(net)
        code = GraphModule(net, graph).code
        asked.option(label).graph(say, graph, code=code)
    return asked
