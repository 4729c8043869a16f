"""Questions of stage 05: what does this print?"""

from __future__ import annotations

import operator
from decimal import Decimal

import torch

from fx._symbolic_trace import symbolic_trace
from fx.codegen.argument_text import ArgumentPrinter
from fx.codegen.names import GlobalNames
from fx.graph import Graph
from stages.residual import Residual


def operators() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    graph.call_function(operator.pow, (-1, x))
    graph.call_function(operator.iadd, (1, x))
    last = graph.call_function(operator.iadd, (x, 1))
    graph.output(last)
    for line in graph.python_code("self").src.splitlines()[4:]:
        print(line.strip())


def callers_words() -> None:
    graph = Graph()
    x = graph.placeholder("input")
    y = graph.placeholder("torch")
    relu = graph.call_function(torch.relu, (x,))
    graph.output((relu, y))
    print(graph.python_code("self").src.strip())


def last_uses() -> None:
    graph = Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    graph.call_function(torch.sigmoid, (x,))
    add = graph.call_function(operator.add, (x, y))
    graph.output((add, y))
    print(graph.python_code("self").src.strip())


def constants() -> None:
    names = GlobalNames(())
    printer = ArgumentPrinter({}, names)
    tenth = Decimal("0.1")
    for value in (0.1, float("inf"), torch.float32, [tenth, tenth]):
        print(printer.text(value))


def refused() -> None:
    torch.manual_seed(0)
    traced = symbolic_trace(Residual())
    x = torch.randn(2, 4)
    before = traced(x)
    traced.graph.erase_node(traced.graph.output_node())
    try:
        traced.recompile()
    except RuntimeError as error:
        print(str(error).partition(":")[0])
    print(torch.equal(traced(x), before), "return relu" in traced.code)
