"""Questions of stage 08: what does this print?"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch

from fx._symbolic_trace import symbolic_trace
from fx.experimental.proxy_tensor import make_fx
from fx.graph_module import GraphModule
from fx.passes.reinplace import reinplace, reinplace_report
from fx.reinplacing.aliasing import Storages, propagate

Function: TypeAlias = Callable[[torch.Tensor], torch.Tensor]


def functional(function: Function, x: torch.Tensor) -> GraphModule:
    """The operators that a function runs, without side effects."""
    return make_fx(torch.func.functionalize(function))(x)


def operators(gm: GraphModule) -> str:
    """What a captured graph calls, in order."""
    calls = [node for node in gm.graph.nodes if node.op == "call_function"]
    return " ".join([str(node.target).split(".")[1] for node in calls])


def in_place(function: Function, x: torch.Tensor) -> str:
    """The nodes that reinplace would do in place or erase."""
    report = reinplace_report(functional(function, x), x)
    return " ".join([verdict.node for verdict in report.done]) or "none"


def what_is_captured() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        if x.ndim == 2:
            x = torch.nn.functional.linear(x, x)
        return x * 2

    print(operators(make_fx(program)(torch.ones(4, 4))))


def what_functionalize_does() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        a = -x
        a[0].add_(1)
        return a

    x = torch.ones(2, 3)
    print(operators(make_fx(program)(x)))
    print(operators(functional(program, x)))


def which_memory() -> None:
    aten = torch.ops.aten

    def program(x: torch.Tensor) -> object:
        turned = aten.t.default(x)
        dense = aten.contiguous.default(turned)
        return aten.mul.Tensor(dense, 2)

    gm = symbolic_trace(program)
    _, values = propagate(gm, (torch.ones(2, 3),))
    storages = Storages(values)
    for node in gm.graph.nodes:
        print(node, storages.of[node], storages.alias_sets(node))


def which_calls() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        a = x.neg()
        b = a.abs()
        c = b.exp()
        return c.add(a)

    print(in_place(program, torch.ones(3)))


def a_view_is_read() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        a = x.neg()
        row = a[0]
        return a.relu().add(row)

    print(in_place(program, torch.ones(3, 3)))


def an_input_is_written() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        y = x.relu()
        x.mul_(2)
        return y

    x = torch.ones(3)
    gm = functional(program, x)
    print(operators(gm))
    print(operators(reinplace(gm, x)))
