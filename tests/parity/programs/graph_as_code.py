"""The documents' first examples, whole: built or traced, edited, and run."""

from __future__ import annotations

import contextlib
import io
import operator
from typing import no_type_check

import torch
from torch import nn
from torch.nn import functional

from tests.parity.harness import Lib, Seen, names, program, show

INPUT = torch.linspace(-2, 2, 6).reshape(2, 3)


class TopK(nn.Module):
    """The module of the documents' Graph entry."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.param = nn.Parameter(torch.rand(3, 4))
        self.linear = nn.Linear(4, 5)

    @no_type_check
    def forward(self, x):
        return torch.topk(
            torch.sum(self.linear(x + self.linear.weight).relu(), dim=-1), 3
        )


class LinearRelu(nn.Module):
    """The module of the worked replacement example."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(3, 2)

    @no_type_check
    def forward(self, x):
        return torch.relu(self.linear(x))


@program(claims=("graph-denotes-function", "graph-build-example"))
def a_graph_built_by_hand_runs(lib: Lib) -> Seen:
    g = lib.Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    total = g.call_function(operator.add, (x, y))
    g.output(g.call_function(torch.relu, (total,)))
    gm = lib.GraphModule(nn.Module(), g)
    by_hand = torch.relu(INPUT + 1)
    return show(gm, INPUT, 1), torch.equal(gm(INPUT, 1), by_hand)


@program(claims=("graph-docstring-example", "graph-str-header"))
def the_topk_module_is_traced(lib: Lib) -> Seen:
    model = TopK()
    gm = lib.symbolic_trace(model)
    x = torch.rand(5, 4)
    kinds = [(n.op, n.format_node()) for n in gm.graph.nodes]
    same = all(
        torch.equal(ours, theirs)
        for ours, theirs in zip(gm(x), model(x), strict=True)
    )
    return kinds, str(gm.graph), same


@program(claims=("relu-to-gelu-example", "nodes-mutation-while-iterating"))
def relu_becomes_gelu(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(LinearRelu())
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        for node in gm.graph.nodes:
            print(node.op, node.name, str(node.target)[:12])
    for node in gm.graph.nodes:
        if node.op == "call_function" and node.target == torch.relu:
            with gm.graph.inserting_after(node):
                new = gm.graph.call_function(
                    functional.gelu, args=node.args, kwargs=node.kwargs
                )
            node.replace_all_uses_with(new)
            gm.graph.erase_node(node)
    gm.graph.lint()
    gm.recompile()
    same = torch.equal(gm(INPUT), functional.gelu(gm.linear(INPUT)))
    return out.getvalue(), str(gm.graph), gm.code, same


@program()
def dead_code_goes_in_child_graph_modules_too(lib: Lib) -> Seen:
    @no_type_check
    def function(x):
        torch.abs(x)
        return torch.relu(x)

    root = nn.Module()
    root.fetched = lib.symbolic_trace(function)
    root.called = lib.symbolic_trace(function)
    g = lib.Graph()
    x = g.placeholder("x")
    g.output((g.get_attr("fetched"), g.call_module("called", (x,))))
    gm = lib.GraphModule(root, g)
    changed = (gm.graph.eliminate_dead_code(), gm.graph.eliminate_dead_code())
    children = (gm.fetched, gm.called)
    return changed, [(names(c.graph.nodes), c.code) for c in children]
