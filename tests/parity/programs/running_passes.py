"""Equal calls made one, and passes run in order."""

from __future__ import annotations

import torch

from tests.parity.harness import Lib, Seen, error, program
from tests.parity.programs._subjects import AnyValue, passes

aten = torch.ops.aten


def without_equal_calls(lib: Lib, graph: AnyValue) -> AnyValue:
    """A module of a graph, after the pass."""
    cse = passes(lib, "dialect.common.cse_pass")
    return cse.CSEPass()(lib.GraphModule({}, graph)).graph_module


@program()
def equal_calls(lib: Lib) -> Seen:
    graph = lib.Graph()
    x = graph.placeholder("x")
    sums = [
        graph.call_function(aten.sum.dim_IntList, (x, [1]), {"dtype": dtype})
        for dtype in (None, None, torch.double)
    ]
    once = [graph.call_function(aten.neg.default, (each,)) for each in sums]
    graph.output(graph.call_function(aten.stack.default, (once,)))
    gm = without_equal_calls(lib, graph)
    return gm.code, str(gm.graph)


@program(differs="cse-effects", ours=5.0)
def a_write_between_equal_calls(lib: Lib) -> Seen:
    graph = lib.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(aten.add.Tensor, (x, 1))
    a = graph.call_function(aten.mul.Tensor, (y, 1))
    graph.call_function(aten.add_.Tensor, (y, 3))
    b = graph.call_function(aten.mul.Tensor, (y, 1))
    graph.output(graph.call_function(aten.add.Tensor, (a, b)))
    return without_equal_calls(lib, graph)(torch.zeros(1)).item()


@program(differs="cse-constants", ours=["torch.int64", "torch.float32"])
def constants_of_two_types(lib: Lib) -> Seen:
    graph = lib.Graph()
    x = graph.placeholder("x")
    graph.output([graph.call_function(torch.mul, (x, by)) for by in (2, 2.0)])
    found = without_equal_calls(lib, graph)(torch.ones(1, dtype=torch.int64))
    return [str(each.dtype) for each in found]


@program(differs="cse-returned", ours=False)
def two_results_returned(lib: Lib) -> Seen:
    graph = lib.Graph()
    x = graph.placeholder("x")
    graph.output([graph.call_function(torch.neg, (x,)) for _ in range(2)])
    one, other = without_equal_calls(lib, graph)(torch.ones(1))
    return one is other


@program(differs="cse-codegen", ours=[2.0])
def nested_inputs(lib: Lib) -> Seen:
    def f(pair: AnyValue) -> AnyValue:
        return torch.neg(pair["a"]) * torch.neg(pair["a"])

    gm = lib.symbolic_trace(f, concrete_args={"pair": {"a": lib.PH}})
    cse = passes(lib, "dialect.common.cse_pass")
    new = cse.CSEPass()(gm).graph_module
    pair = {"a": torch.ones(1)}
    said = error(lambda: new(pair))
    return [new(pair).item() + 1] if said == "no error" else said


class Count:
    """A pass that counts its runs."""

    def __init__(self, lib: Lib) -> None:
        self.lib, self.runs = lib, 0

    def __call__(self, gm: AnyValue) -> AnyValue:
        self.runs += 1
        result: AnyValue = passes(self.lib, "infra.pass_base").PassResult
        return result(gm, False)


@program(differs="pass-twice", ours=2)
def a_pass_listed_twice(lib: Lib) -> Seen:
    manager = passes(lib, "infra.pass_manager")
    count, other = Count(lib), Count(lib)
    rule = manager.this_before_that_pass_constraint(count, other)
    run = manager.PassManager([count, other, count], [rule])
    said = error(lambda: run(lib.symbolic_trace(lambda x: x.neg())), chars=8)
    return count.runs if said == "no error" else said


@program(differs="pass-lint", ours="Exception: An error occurred when running")
def a_pass_that_breaks_a_graph(lib: Lib) -> Seen:
    manager = passes(lib, "infra.pass_manager")

    def swap(gm: AnyValue) -> None:
        x, neg, exp, _ = gm.graph.nodes
        neg.args, exp.args = (exp,), (x,)

    gm = lib.symbolic_trace(lambda x: x.neg().exp())
    run = manager.PassManager(
        [manager.pass_result_wrapper(swap)], run_checks_after_each_pass=True
    )
    return error(lambda: run(gm), chars=30)
