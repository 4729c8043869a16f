"""Programs that ask for sizes: fx.trace beside what torch.fx has for them."""

from __future__ import annotations

from typing import Any, TypeAlias

import torch
from torch.fx.experimental import meta_tracer

from tests.parity.harness import Lib, Made, Seen, error, program

AnyValue: TypeAlias = Any

X = torch.ones(2, 3)


def traced(lib: Lib, function: AnyValue, x: torch.Tensor) -> Made:
    """The graph of a function on an example, by what a library has."""
    if hasattr(lib, "trace"):
        return lib.trace(function, x)
    return meta_tracer.symbolic_trace(function, meta_args={"x": x.to("meta")})


def by_rows(x: AnyValue) -> AnyValue:
    """Does something else for one row."""
    return x * 2 if x.shape[0] > 1 else x * 3


@program(
    differs="examples-are-checked",
    ours=[12.0, "GuardError", ["x.size(0) > 1"]],
)
def a_branch_on_a_size(lib: Lib) -> Seen:
    gm = traced(lib, by_rows, X)
    refused = error(lambda: gm(X[:1])).partition(":")[0]
    asked = [each.expression for each in getattr(gm, "guards", ()) if each.line]
    return [gm(X).sum().item(), refused, asked]


def without_gradients(x: AnyValue) -> AnyValue:
    """Loops over rows, in a block."""
    with torch.no_grad():
        return sum(x[i] for i in range(x.shape[0]))


@program(differs="blocks-of-an-example", ours=[False, True])
def a_block_without_gradients(lib: Lib) -> Seen:
    gm = traced(lib, without_gradients, X)
    targets = [node.target for node in gm.graph.nodes]
    return [
        gm(X.clone().requires_grad_()).requires_grad,
        torch.is_grad_enabled in targets,
    ]


@program(differs="sizes-of-an-example", ours=[25.0, "x * size_1"])
def a_size_in_the_graph(lib: Lib) -> Seen:
    gm = traced(lib, lambda x: x * x.shape[1], X)
    product = gm.code.partition("mul = ")[2].partition(";")[0]
    return [gm(torch.ones(1, 5)).sum().item(), product]
