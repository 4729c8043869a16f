"""Passes at work: the graph before, and the graph after."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

import fx
from fx.experimental.const_fold import split_const_subgraphs
from fx.experimental.merge_matmul import merge_matmul
from fx.experimental.normalize import NormalizeArgs
from fx.experimental.optimization import remove_dropout
from fx.passes.canonicalize import canonicalize_graph
from fx.passes.conv_bn_fusion import fold_conv_bn
from fx.passes.dialect.common.cse_pass import CSEPass
from fx.passes.graph_diff import diff
from fx.passes.infra.partitioner import CapabilityBasedPartitioner
from fx.passes.pipeline import cut_in_stages
from fx.passes.split_module import split_module
from fx.passes.split_utils import split_by_tags


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.norm = nn.BatchNorm2d(8)
        self.drop = nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.norm(self.conv(x)))
        return torch.tanh(self.drop(x))


def fold_batch_norms() -> None:
    gm = fx.symbolic_trace(Net().eval())
    print("before:", gm.graph)
    print("folded:", fold_conv_bn(gm))
    print("after:", gm.graph)


def without_dropout() -> None:
    gm = fx.symbolic_trace(Net())
    print("before:", gm.graph)
    after = remove_dropout(gm)
    assert isinstance(after, fx.GraphModule)
    print("after:", after.graph)


def cut_by_function() -> None:
    gm = fx.symbolic_trace(Net())
    print("before:", gm.graph)
    front = {"conv", "norm"}
    parts = split_module(gm, gm, lambda node: int(node.name not in front))
    print("after:", parts.graph)
    for name, part in parts.named_children():
        print(f"{name}:", part.graph)


def cut_by_tags() -> None:
    gm = fx.symbolic_trace(Net())
    print("before:", gm.graph)
    for node in gm.graph.nodes:
        front = node.name in ("conv", "norm")
        vars(node)["tag"] = "front" if front else "back"
    parts = split_by_tags(gm, ["front", "back"])
    print("after:", parts.graph)
    for name, part in parts.named_children():
        print(f"{name}:", part.graph)


def cut_for_machines() -> None:
    model = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 2))
    gm = fx.symbolic_trace(model)
    print("before:", gm.graph)
    for number, stage in enumerate(cut_in_stages(gm, 2, [torch.ones(1, 2)])):
        print(f"stage {number}:", stage.graph)


def one_order() -> None:
    def program(x: Tensor) -> Tensor:
        sine = torch.sin(x)
        return torch.cos(x) + sine

    def key(node: fx.Node, places: Mapping[fx.Node, int]) -> object:
        name = getattr(node.target, "__name__", node.target)
        return node.op != "placeholder", name

    gm = fx.symbolic_trace(program)
    print("before:", gm.graph)
    canonicalize_graph(gm.graph, key, lambda node: not node.is_impure())
    print("after:", gm.graph)


def what_differs() -> None:
    before, after = fx.symbolic_trace(Net().eval()), fx.symbolic_trace(Net())
    print("before:", before.graph)
    fold_conv_bn(before)
    print("after:", before.graph)
    print(diff(after, before))


def equal_calls() -> None:
    def program(x: Tensor) -> Tensor:
        y = x + 1
        first, again = torch.exp(y), torch.exp(y)
        y.add_(1)  # after this, exp(y) is another value
        return first * again * torch.exp(y)

    gm = fx.symbolic_trace(program)
    print("before:", gm.graph)
    print("after:", CSEPass().call(gm).graph_module.graph)


def fold_constants() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Parameter(torch.ones(2), requires_grad=False)
            self.b = nn.Parameter(torch.ones(2), requires_grad=False)

        def forward(self, x: Tensor) -> Tensor:
            return x * (self.a + self.b)

    gm = fx.symbolic_trace(Scaled())
    print("before:", gm.graph)
    folded = split_const_subgraphs(gm)
    folded.run_folding()
    print("after:", folded.graph)


def merge_products() -> None:
    class Products(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.ones(3, 3))

        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return torch.matmul(x, self.w) + torch.matmul(y, self.w)

    gm = fx.symbolic_trace(Products())
    print("before:", gm.graph)
    print("after:", merge_matmul(gm).graph)


def normal_arguments() -> None:
    def program(x: Tensor) -> Tensor:
        return nn.functional.relu(x, False).sum(-1)

    gm = fx.symbolic_trace(program)
    print("before:", gm.graph)
    print("after:", NormalizeArgs(gm).transform().graph)


class Supported:
    def is_node_supported(
        self, submodules: Mapping[str, nn.Module], node: fx.Node
    ) -> bool:
        return node.target in (torch.relu, torch.tanh)


def pieces_of_a_back_end() -> None:
    def program(x: Tensor) -> Tensor:
        y = torch.tanh(torch.relu(x))
        return torch.relu(torch.sin(y))

    gm = fx.symbolic_trace(program)
    print("before:", gm.graph)
    partitioner = CapabilityBasedPartitioner(
        gm, Supported(), allows_single_node_partition=True
    )
    print("after:", partitioner.partition_and_fuse().graph)
