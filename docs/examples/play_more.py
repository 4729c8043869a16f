"""Programs to choose from in the playground."""

from __future__ import annotations

import copy
import operator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import fx


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(64, 192)
        self.out = nn.Linear(64, 64)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.qkv(x).chunk(3, dim=-1)
        scores = torch.einsum("bld,bmd->blm", query, key) / 8
        mixed = torch.matmul(F.softmax(scores, dim=-1), value)
        x = self.out(mixed)
        return x


def attention() -> None:
    """Attention"""
    gm = fx.symbolic_trace(Attention())
    fx.show(gm, torch.randn(2, 10, 64))


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(8, 8, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(8)

    def forward(self, x: Tensor) -> Tensor:
        inner = torch.relu(self.norm1(self.conv1(x)))
        inner = self.norm2(self.conv2(inner))
        return torch.relu(inner + x)


def residual() -> None:
    """A residual block."""
    gm = fx.symbolic_trace(Residual())
    fx.show(gm, torch.randn(1, 8, 32, 32))


class Deep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(16, 16) for _ in range(4)])

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        return x


def layers() -> None:
    """A loop over layers."""
    # The loop runs while tracing, so the graph has each turn of it.
    gm = fx.symbolic_trace(Deep())
    fx.show(gm, torch.randn(2, 16))


def clipped(x: Tensor) -> Tensor:
    if x.max() > 1:
        return x / x.max()
    return x


def branch() -> None:
    """A branch that tracing refuses."""
    # A proxy has no value, so Python cannot choose a branch by it.
    fx.symbolic_trace(clipped)


def gated(x: Tensor) -> Tensor:
    return x * torch.sigmoid(x)


def rewrite() -> None:
    """A rewrite: two calls become one."""
    before = fx.symbolic_trace(gated)
    after = copy.deepcopy(before)
    for mul in after.graph.find_nodes(op="call_function", target=operator.mul):
        x, gate = mul.args
        if isinstance(gate, fx.Node) and gate.args == (x,):
            with after.graph.inserting_after(mul):
                silu = after.graph.call_function(F.silu, (x,))
            mul.replace_all_uses_with(silu)
    after.graph.eliminate_dead_code()
    after.recompile()
    fx.show(before, torch.randn(3), after=after)


def without_dropout(gm: fx.GraphModule) -> fx.GraphModule:
    for node in gm.graph.find_nodes(op="call_module", target="drop"):
        node.replace_all_uses_with(node.all_input_nodes[0])
        gm.graph.erase_node(node)
    gm.recompile()
    return gm


class Head(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.1)
        self.linear = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.linear(self.drop(x))
        return x


def own_pass() -> None:
    """A pass of your own."""
    before = fx.symbolic_trace(Head())
    after = without_dropout(copy.deepcopy(before))
    fx.show(before, torch.randn(2, 64), after=after)
