"""Passes: a module cut into parts."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from tests.parity.harness import Lib, Seen, error, program
from tests.parity.programs._subjects import AnyValue, passes


def split(
    lib: Lib,
    root: Callable[..., AnyValue],
    parts: dict[str, int],
    **options: bool,
) -> AnyValue:
    """A traced program, cut by the names of its nodes; else they are in 0."""
    gm = lib.symbolic_trace(root)
    return passes(lib, "split_module").split_module(
        gm, gm, lambda node: parts.get(node.name, 0), **options
    )


@program(
    differs="split-cycle",
    ours=("RuntimeError: cycle exists between partitions!", True),
)
def parts_that_need_each_other(lib: Lib) -> Seen:
    def f(x: AnyValue) -> AnyValue:
        return torch.relu(x).neg().exp()

    said = error(lambda: split(lib, f, {"neg": 1}))
    try:
        split(lib, f, {"neg": 1})
    except RuntimeError as problem:
        return said, "exp uses neg" in str(problem)
    return said


@program(differs="split-effects", ours=[[2.0], [20.0]])
def a_write_between_reads(lib: Lib) -> Seen:
    def f(x: AnyValue) -> AnyValue:
        y = x + 1
        before = y * 2
        y.add_(3)
        return before, y * 5

    gm = split(lib, f, {"mul": 1, "add_": 2, "mul_1": 3})
    return [value.tolist() for value in gm(torch.zeros(1))]


class OneName(nn.Module):
    """Its paths `a.0` and `a_0` are one name if a dot becomes a bar."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Sequential(nn.Threshold(5, 3))
        self.a_0 = nn.ReLU()

    def forward(self, x: AnyValue) -> AnyValue:
        return self.a_0(self.a(x)).neg()


@program(differs="split-names", ours=[3.0])
def two_paths_that_look_alike(lib: Lib) -> Seen:
    model: AnyValue = OneName()
    gm = split(lib, model, {"neg": 1})
    values: list[float] = gm(torch.ones(1)).tolist()
    return [abs(value) for value in values]


@program(differs="split-kept-names", ours=3)
def kept_names_and_any_number_of_inputs(lib: Lib) -> Seen:
    def f(x: AnyValue, k: int = 1, *rest: AnyValue) -> AnyValue:
        return x + k, rest

    try:
        return split(lib, f, {}, keep_original_node_name=True)(2)[0]
    except SyntaxError:
        return "SyntaxError"


@program(differs="split-codegen", ours=[2.0])
def nested_inputs(lib: Lib) -> Seen:
    def f(pair: AnyValue) -> AnyValue:
        return (pair["a"] + pair["b"]).relu()

    gm = lib.symbolic_trace(
        f, concrete_args={"pair": {"a": lib.PH, "b": lib.PH}}
    )
    cut = passes(lib, "split_module").split_module(gm, gm, lambda node: 0)
    pair = {"a": torch.ones(1), "b": torch.ones(1)}
    said = error(lambda: cut(pair))
    return cut(pair).tolist() if said == "no error" else said


@program(differs="split-modes", ours=([True, False], 0))
def a_part_in_another_grad_mode(lib: Lib) -> Seen:
    graph: AnyValue = lib.Graph()
    x = graph.placeholder("x")
    one = graph.call_function(torch.sin, (x,))
    switch = torch._C._set_grad_enabled
    graph.call_function(switch, (False,))
    two = graph.call_function(torch.cos, (x,))
    three = graph.call_function(torch.exp, (two,))
    on = graph.call_function(switch, (True,))
    graph.output((one, three))
    gm = lib.GraphModule(nn.Module(), graph)
    cut = passes(lib, "split_module").split_module(
        gm, gm, lambda node: int(node in (three, on))
    )
    found = [y.requires_grad for y in cut(torch.ones(1, requires_grad=True))]
    switches = str(cut.submod_1.code).count("(False)")
    return found, switches
