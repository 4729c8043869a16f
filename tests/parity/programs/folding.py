"""Constants folded, norms fused, dropouts left out."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeAlias, no_type_check

import torch
from torch import nn

from tests.parity.harness import Lib, Seen, error, program

AnyValue: TypeAlias = Any


def experimental(lib: Lib, name: str) -> AnyValue:
    """A module of one of the libraries."""
    return import_module(f"{lib.__name__}.experimental.{name}")


class Layers(nn.Module):
    """A weight and some modules; forward varies."""

    def __init__(self) -> None:
        super().__init__()
        self.conv: AnyValue
        self.norm: AnyValue
        self.flat: AnyValue
        self.w = nn.Parameter(torch.ones(2), requires_grad=False)
        self.linear = nn.Linear(2, 2)
        self.conv = nn.Conv2d(1, 2, 1)
        self.norm, self.flat = nn.BatchNorm2d(2), nn.BatchNorm1d(2)
        self.drop = nn.Dropout(0.5)
        nn.init.constant_(self.conv.weight, 2.0)
        nn.init.constant_(self.conv.bias, 1.0)
        nn.init.constant_(self.linear.weight, 2.0)
        nn.init.constant_(self.norm.running_mean, 3.0)
        self.flat.running_mean.copy_(torch.tensor([1.0, 5.0]))
        self.eval()


def layers(forward: Callable[..., AnyValue]) -> AnyValue:
    """Layers with this forward."""
    return type("Model", (Layers,), {"forward": forward})()


def folded(lib: Lib, forward: Callable[..., AnyValue]) -> AnyValue:
    """A model with its constants folded."""
    made = layers(forward)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return experimental(lib, "const_fold").split_const_subgraphs(made)


X = torch.zeros(2)


def note(x: AnyValue) -> AnyValue:
    """A function of the user's, which may do anything."""
    return x


@program(newest=True)
def calls_that_are_said_to_have_an_effect(lib: Lib) -> Seen:
    @no_type_check
    def forward(self, x):
        torch.relu(x)
        torch.neg(x)
        return x - (self.w + 1)

    def is_impure(node: AnyValue) -> bool:
        return node.target is torch.relu or node.is_impure()

    split = experimental(lib, "const_fold").split_const_subgraphs
    gm = split(layers(forward), is_impure_node=is_impure)
    return gm.code, gm(X)


@program(newest=True)
def nodes_of_called_graphs_that_are_not_to_be_folded(lib: Lib) -> Seen:
    outer, root = nn.Module(), nn.Module()
    inner = lib.symbolic_trace(layers(lambda self: torch.relu(self.w) + 1))
    outer.sub = inner
    g = lib.Graph()
    g.output(g.call_function(torch.neg, (g.call_module("sub"),)))
    root.sub = lib.GraphModule(outer, g)
    g = lib.Graph()
    x = g.placeholder("x")
    g.output(g.call_function(torch.add, (x, g.call_module("sub"))))
    gm = lib.GraphModule(root, g)
    seen: list[object] = []
    for function in (torch.relu, torch.neg, torch.abs):
        new = experimental(lib, "const_fold").split_const_subgraphs(
            gm, lambda node, f=function: node.target is f
        )
        seen += [[node.op for node in new.graph.nodes], new(X)]
    return seen


@program(newest=True)
def modules_and_missing_attributes_are_no_constants(lib: Lib) -> Seen:
    root = layers(lambda self, x: x)
    g = lib.Graph()
    x = g.placeholder("x")
    for path in ("linear", "w"):
        value = g.call_function(note, (g.get_attr(path),))
        g.call_function(torch._assert, (value, ""))
    g.output(g.call_function(torch.add, (x, g.get_attr("w"))))
    split = experimental(lib, "const_fold").split_const_subgraphs
    gm = split(lib.GraphModule(root, g), lambda node: node.target == "w")
    return [str(node.target) for node in gm.graph.nodes]


@program(differs="fold-returned", ours=[[2.0, 2.0], [2.0, 2.0]])
def a_folded_value_that_is_returned(lib: Lib) -> Seen:
    gm = folded(lib, lambda self, x: (self.w + 1, x))
    seen = []
    for _ in range(2):
        value, _ = gm(X)
        seen.append(value.tolist())
        value.detach().mul_(5)
    return seen


@program(differs="fold-effects", ours=[1.0, 2.0])
def a_write_into_what_is_read(lib: Lib) -> Seen:
    graph = lib.Graph()
    x, w = graph.placeholder("x"), graph.get_attr("w")
    row = graph.call_function(torch.add, (w, 0))
    graph.call_method("mul_", (w, 2))
    after = graph.call_function(torch.add, (w, 0))
    change = graph.call_function(torch.sub, (after, row))
    graph.output(graph.call_function(torch.add, (x, change)))
    gm = lib.GraphModule({"w": torch.ones(2)}, graph)
    fold = experimental(lib, "const_fold")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = fold.split_const_subgraphs(gm)
    return [found(X)[0].item() for _ in range(2)]


@program(differs="fold-changed", ours=[3.0, 9.0])
def a_weight_that_changes(lib: Lib) -> Seen:
    gm = folded(lib, lambda self, x: x + self.w * 3)
    before = gm(X)[0].item()
    gm.const_subgraph_module.w.mul_(3)
    return [before, gm(X)[0].item()]


@program(differs="fold-numbers", ours="torch.int64")
def a_folded_number(lib: Lib) -> Seen:
    gm = folded(lib, lambda self, x: torch.add(x, self.w.neg().size(0)))
    return str(gm(torch.zeros(1, dtype=torch.int64)).dtype)


@program(differs="fold-calls", ours=["no error", "no error"])
def a_copy_and_keywords(lib: Lib) -> Seen:
    gm = folded(lib, lambda self, x: x + self.w.neg())
    copied = copy.deepcopy(gm)
    return [error(lambda: copied(X), chars=0), error(lambda: gm(x=X), chars=0)]


def one_image() -> torch.Tensor:
    """An image of one pixel."""
    return torch.ones(1, 1, 1, 1)


def outcome(run: Callable[[], AnyValue]) -> Seen:
    """The numbers that a call returns, rounded, or its error."""
    try:
        return [round(each, 2) for each in run().flatten().tolist()]
    except AssertionError as raised:
        return f"AssertionError: {raised}"[:30]


@program(differs="fuse-shared", ours=[-2.0, -2.0])
def a_layer_before_two_norms(lib: Lib) -> Seen:
    def forward(self: AnyValue, x: AnyValue) -> AnyValue:
        return self.norm(self.conv(x)) + self.norm(self.conv(x - 1))

    model = layers(forward)
    gm = experimental(lib, "optimization").fuse(model)
    return outcome(lambda: gm(one_image()))


@program(differs="fuse-training", ours=[0.0, 0.0, 0.0, 0.0])
def a_norm_in_training(lib: Lib) -> Seen:
    model = layers(lambda self, x: self.norm(self.conv(x)))
    model.train()
    fuse = experimental(lib, "optimization").fuse
    return outcome(lambda: fuse(model)(one_image().expand(2, 1, 1, 1)))


@program(differs="fuse-hooks", ours=[3.0, 3.0])
def a_hook_between_layer_and_norm(lib: Lib) -> Seen:
    model = layers(lambda self, x: self.norm(self.conv(x)))
    model.conv.register_forward_hook(lambda module, args, y: y * 2)
    gm = experimental(lib, "optimization").fuse(model)
    return outcome(lambda: gm(one_image()))


@program(differs="fuse-written", ours=True)
def a_weight_that_is_filled(lib: Lib) -> Seen:
    def forward(self: AnyValue, x: AnyValue) -> AnyValue:
        self.conv.weight.data.fill_(5)
        return self.norm(self.conv(x))

    model = layers(forward)
    nn.init.constant_(model.norm.weight, 3.0)
    gm = experimental(lib, "optimization").fuse(model)
    x = one_image() + 1
    return torch.allclose(gm(x), model(x))


@program(differs="fuse-tied", ours=True)
def a_weight_by_another_name(lib: Lib) -> Seen:
    def forward(self: AnyValue, x: AnyValue) -> AnyValue:
        self.w.data.fill_(5)
        return self.norm(self.conv(x))

    model = layers(forward)
    model.w = nn.Parameter(model.conv.weight.detach())
    nn.init.constant_(model.norm.weight, 3.0)
    gm = experimental(lib, "optimization").fuse(model, inplace=True)
    x = one_image() + 1
    return torch.allclose(gm(x), model(x))


@program(differs="fuse-linear", ours=[-1.0, -1.0, -5.0, -5.0])
def a_norm_along_another_dimension(lib: Lib) -> Seen:
    model = layers(lambda self, x: self.flat(self.linear(x)))
    nn.init.zeros_(model.linear.bias)
    gm = experimental(lib, "optimization").fuse(model)
    return outcome(lambda: gm(torch.zeros(1, 2, 2)))


@program(differs="dropout-code", ours=[3.0, 3.0])
def a_dropout_with_a_hook(lib: Lib) -> Seen:
    model = layers(lambda self, x: self.drop(x) + 1)
    model.drop.register_forward_hook(lambda module, args, y: y + 2)
    gm = experimental(lib, "optimization").remove_dropout(model)
    return outcome(lambda: gm(X))
