"""A line or two for each name that people use; the API pages show them.

What is below the comment with a name is that name's example.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import nn

import fx
from fx.experimental.proxy_tensor import make_fx
from fx.extra.matching.explain import explain
from fx.passes.conv_bn_fusion import fold_conv_bn
from fx.passes.dialect.common.cse_pass import CSEPass
from fx.passes.fake_tensor_prop import FakeTensorProp
from fx.passes.profiling import Profiler
from fx.passes.reinplace import reinplace, reinplace_report
from fx.passes.shape_prop import ShapeProp
from fx.passes.split_module import split_module
from fx.passes.utils.matcher_utils import SubgraphMatcher
from fx.rewriting.rules import Rule, rewrite_until_stable
from fx.subgraph_rewriter import replace_pattern_with_filters

AnyValue: TypeAlias = Any
"""What a program computes with: anything."""


class Model(nn.Module):
    """The model of all examples."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """A layer, and relu."""
        return torch.relu(self.linear(x) + x)


def main() -> None:
    """Run all."""
    torch.manual_seed(0)
    tracing()
    looking()
    editing()
    modules()
    running()
    rewriting()
    operators()


def tracing() -> None:
    """Trace a program."""
    model, x = Model(), torch.ones(2, 4)

    # fx.symbolic_trace
    gm = fx.symbolic_trace(model)
    print(gm.code)
    gm(x)  # computes what model(x) does

    # fx.Tracer
    graph = fx.Tracer().trace(model)  # the graph alone, no module
    gm = fx.GraphModule(model, graph)

    # fx._symbolic_trace.Tracer.is_leaf_module
    class Whole(fx.Tracer):
        def is_leaf_module(self, m: nn.Module, path: str) -> bool:
            return True  # each child of the model is one node

    Whole().trace(model)

    # fx.PH
    def f(pair: dict[str, torch.Tensor]) -> torch.Tensor:
        return pair["a"] + pair["b"]

    fx.symbolic_trace(f, concrete_args={"pair": {"a": fx.PH, "b": fx.PH}})

    # fx.TraceError
    try:
        fx.symbolic_trace(lambda x: x if x.sum() > 0 else -x)
    except fx.TraceError as error:
        print(error)  # names the line, and says what to do

    # fx.Proxy
    node = graph.find_nodes(op="call_function", target=torch.relu)[0]
    with graph.inserting_after(node):
        doubled = fx.Proxy(node) * 2  # adds a node to the graph
    print(doubled.node)


def looking() -> None:
    """Look at a graph."""
    gm = fx.symbolic_trace(Model())
    graph = gm.graph

    # fx.Graph
    print(gm.graph)  # a line for each node

    # fx.graph.Graph.nodes
    for node in graph.nodes:  # the loop may edit the graph
        print(node.name, node.op, node.target, node.args)

    # fx.graph.Graph.find_nodes
    (relu,) = graph.find_nodes(op="call_function", target=torch.relu)

    # fx.Node
    print(relu.op, relu.target, relu.args, relu.kwargs)

    # fx.node.Node.users
    print(list(relu.users))  # the nodes that use its value

    # fx.node.Node.all_input_nodes
    print(relu.all_input_nodes)  # the nodes whose values it uses

    # fx.node.Node.meta
    relu.meta["note"] = "anything; copies and pickles keep it"

    # fx.map_arg
    names = fx.map_arg(relu.args, lambda node: node.name)
    print(names)  # ('add',)

    # fx.lint
    for problem in fx.lint.problems(graph):
        print(problem.node, problem.message)

    # fx.graph.Graph.lint
    graph.lint()  # raises an error if something is wrong

    # fx.extra.effects.effects.classify
    print(fx.effects.classify(relu))  # pure, impure or unknown, and why


def editing() -> None:
    """Edit a graph."""
    gm = fx.symbolic_trace(Model())
    graph = gm.graph
    (relu,) = graph.find_nodes(op="call_function", target=torch.relu)

    # fx.graph.Graph.inserting_after
    with graph.inserting_after(relu):
        gelu = graph.call_function(torch.nn.functional.gelu, relu.args)

    # fx.node.Node.replace_all_uses_with
    relu.replace_all_uses_with(gelu)  # users of relu now use gelu

    # fx.graph.Graph.erase_node
    graph.erase_node(relu)  # it must not have users

    # fx.graph.Graph.inserting_before
    with graph.inserting_before(gelu):
        half = graph.call_function(torch.mul, (*gelu.args, 0.5))

    # fx.node.Node.args
    gelu.args = (half,)  # users of all nodes follow

    # fx.node.Node.replace_input_with
    gelu.replace_input_with(half, half.all_input_nodes[0])

    # fx.graph.Graph.eliminate_dead_code
    graph.eliminate_dead_code()  # half has no users any more

    # fx.graph.Graph.node_copy
    with graph.inserting_after(gelu):
        again = graph.node_copy(gelu)
    print(again)

    # fx.graph.Graph.graph_copy
    other = fx.Graph()
    result = other.graph_copy(graph, {})
    other.output(result)

    # fx.graph.Graph.create_node
    fresh = fx.Graph()
    x = fresh.create_node("placeholder", "x")
    neg = fresh.create_node("call_function", torch.neg, (x,))
    fresh.output(neg)


def modules() -> None:
    """Graph modules: compile, keep."""
    model = Model()
    gm = fx.symbolic_trace(model)

    # fx.graph_module.GraphModule.recompile
    for node in gm.graph.find_nodes(op="call_function", target=torch.relu):
        node.target = torch.tanh
    gm.recompile()  # from now on gm(x) does what the graph says

    # fx.graph_module.GraphModule.code
    print(gm.code)

    # fx.graph_module.GraphModule.print_readable
    gm.print_readable()  # with its submodules

    # fx.GraphModule
    graph = fx.Tracer().trace(model)
    made = fx.GraphModule(model, graph)  # parameters are shared with model
    print(made(torch.ones(2, 4)).shape)

    # fx.graph_module.GraphModule.add_submodule
    gm.add_submodule("head", nn.Linear(4, 2))

    # fx.graph_module.GraphModule.delete_all_unused_submodules
    gm.delete_all_unused_submodules()  # no node calls head

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.fx"

        # fx.save
        fx.save(gm, path)

        # fx.load
        loaded = fx.load(path)  # runs no code of the file
        print(loaded.code)

    # fx.to_torch
    theirs = fx.to_torch(gm)  # a torch.fx.GraphModule

    # fx.from_torch
    ours = fx.from_torch(theirs)
    print(ours.graph)


def running() -> None:
    """Run node by node."""
    gm = fx.symbolic_trace(Model())
    x = torch.ones(2, 4)

    # fx.Interpreter
    class Shapes(fx.Interpreter):
        def run_node(self, n: fx.Node) -> AnyValue:
            value = super().run_node(n)
            print(n.name, tuple(value.shape))
            return value

    Shapes(gm).run(x)

    # fx.Transformer
    class Tanh(fx.Transformer):
        def call_function(
            self, target: AnyValue, args: AnyValue, kwargs: AnyValue
        ) -> AnyValue:
            target = torch.tanh if target is torch.relu else target
            return super().call_function(target, args, kwargs)

    print(Tanh(gm).transform().code)

    # fx.passes.shape_prop.ShapeProp
    ShapeProp(gm).propagate(x)
    for node in gm.graph.nodes:
        print(node.name, node.meta["tensor_meta"].shape)

    # fx.passes.fake_tensor_prop.FakeTensorProp
    FakeTensorProp(gm).propagate(x)  # no data is computed

    # fx.passes.profiling.Profiler
    profiler = Profiler(gm)
    profiler.run(x)
    print(profiler.table())  # a line for each node, the slowest first


def rewriting() -> None:
    """Replace patterns."""
    gm = fx.symbolic_trace(Model())

    # fx.passes.utils.matcher_utils.SubgraphMatcher
    wanted = fx.symbolic_trace(lambda a, b: torch.relu(a + b)).graph
    print(SubgraphMatcher(wanted).match(gm.graph))

    # fx.extra.matching.explain.explain
    explain(gm, lambda a: torch.relu(torch.neg(a)))  # says why it is not found

    # fx.replace_pattern
    fx.replace_pattern(
        gm,
        lambda a, b: torch.relu(a + b),
        lambda a, b: torch.clamp(a + b, min=0.0),
    )

    # fx.subgraph_rewriter.replace_pattern_with_filters
    replace_pattern_with_filters(
        gm,
        lambda a, b: torch.clamp(a + b, min=0.0),
        lambda a, b: torch.relu(a + b),
        match_filters=[lambda match, graph, pattern: len(graph.nodes) < 100],
    )

    # fx.rewriting.rules.rewrite_until_stable
    once = Rule(lambda a: torch.relu(torch.relu(a)), lambda a: torch.relu(a))
    print(rewrite_until_stable(gm, [once]), "rewrites")

    # fx.show
    page = fx.show(gm, torch.ones(2, 4))  # a notebook shows it

    # fx.show.document.Page
    page.write(Path(tempfile.gettempdir()) / "graph.html")

    # fx.diff
    print(fx.diff(fx.symbolic_trace(Model()), gm))

    # fx.passes.conv_bn_fusion.fold_conv_bn
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).eval()
    print(fold_conv_bn(fx.symbolic_trace(model)), "folded")

    # fx.passes.dialect.common.cse_pass.CSEPass
    gm = CSEPass().call(gm).graph_module  # equal calls once

    # fx.passes.split_module.split_module
    parts = {node: int(node.op == "call_function") for node in gm.graph.nodes}
    print(split_module(gm, gm, lambda node: parts[node]).code)


def operators() -> None:
    """Operators of ATen."""
    x = torch.ones(2, 4)

    # fx.experimental.proxy_tensor.make_fx
    gm = make_fx(lambda x: (x + 1).relu())(x)
    print(gm.code)  # ATen operators

    # fx.passes.reinplace.reinplace_report
    print(reinplace_report(gm, x))  # what can be done in place, and why not

    # fx.passes.reinplace.reinplace
    reinplace(gm, x)


if __name__ == "__main__":
    main()
