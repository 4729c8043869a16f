"""PyTorch Geometric: models for one type of node, made ones for many."""

from __future__ import annotations

from typing import Final

import torch
from torch import nn
from torch_geometric import nn as pyg
from torch_geometric.nn import to_hetero_with_bases

from fx.use_def.values import AnyValue
from tests.clients.record import Notes, case

PACKAGES = ("torch-geometric",)

TYPES: Final = (
    ["paper", "author"],
    [("paper", "cites", "paper"), ("paper", "by", "author")],
)


class Network(nn.Module):
    """Two convolutions of a graph, with a skip."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = pyg.SAGEConv((-1, -1), 8)
        self.conv2 = pyg.SAGEConv((-1, -1), 8)
        self.linear = nn.Linear(8, 4)

    def forward(self, x: AnyValue, edge_index: AnyValue) -> AnyValue:
        x = self.conv1(x, edge_index).relu()
        return self.linear(self.conv2(x, edge_index) + x)


class Plain(nn.Module):
    """For one type, with sizes that are known."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = pyg.GraphConv(16, 16)
        self.linear = nn.Linear(16, 4)

    def forward(self, x: AnyValue, edge_index: AnyValue) -> AnyValue:
        return self.linear(self.conv(x, edge_index).relu())


def _graph() -> tuple[AnyValue, AnyValue]:
    """Features and edges, by type."""
    x = {"paper": torch.rand(6, 16), "author": torch.rand(4, 16)}
    edges = {
        TYPES[1][0]: torch.randint(0, 6, (2, 12)),
        TYPES[1][1]: torch.stack(
            [torch.randint(0, 6, (9,)), torch.randint(0, 4, (9,))]
        ),
    }
    return x, edges


def _run(found: Notes, transformed: AnyValue) -> None:
    """Note the graph, the code, and a result."""
    found["graph"] = transformed.graph
    found["code"] = transformed.code
    x, edges = _graph()
    with torch.no_grad():
        transformed(x, edges)  # sizes that were not known are set here
    for parameter in transformed.parameters():
        nn.init.constant_(parameter, 0.1)
    found["result"] = transformed(x, edges)


def main() -> None:
    """Both ways to make a model for many types of nodes."""
    for aggregation in "sum", "mean", "max":
        with case(f"to_hetero, {aggregation}") as found:
            _run(found, pyg.to_hetero(Network(), TYPES, aggregation))
    with case("to_hetero_with_bases") as found:
        _run(found, to_hetero_with_bases(Plain(), TYPES, num_bases=2))
    with case("to_fixed_size") as found:
        _run_fixed(found)


def _run_fixed(found: Notes) -> None:
    """A model whose batch has a size that is known."""
    from torch_geometric.nn import to_fixed_size  # noqa: PLC0415

    transformed = to_fixed_size(Plain(), batch_size=2)
    found["graph"] = transformed.graph
    found["code"] = transformed.code
