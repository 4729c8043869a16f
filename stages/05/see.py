"""What one can see once an exercise of stage 05 is right."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Final

import torch

from fx._symbolic_trace import symbolic_trace
from fx.graph import Graph
from stages.residual import Residual


def bound() -> str:
    """The globals that the code of a graph needs."""
    traced = symbolic_trace(lambda x: torch.relu(x).to(torch.float64))
    return ", ".join(sorted(traced.graph.python_code("self").globals))


def operators() -> str:
    """One operator as a call and as syntax."""
    graph = Graph()
    x = graph.placeholder("x")
    graph.call_function(operator.iadd, (1, x))
    graph.output(graph.call_function(operator.iadd, (x, 1)))
    return graph.python_code("self").src.strip()


def lines() -> str:
    """The function that a graph is, before it is compiled."""
    return symbolic_trace(Residual()).graph.python_code("self").src.strip()


def run() -> str:
    """The code is run."""
    model, x = Residual(), torch.ones(1, 4)
    same = torch.equal(symbolic_trace(model)(x), model(x))
    return f"Residual, traced and run as Python, is the same as eager: {same}"


SEE: Final[dict[str, Callable[[], str]]] = {
    "has_syntax": operators,
    "Emitter.placeholder": lines,
    "Emitter._end": lines,
    "GlobalNames.bind": bound,
    "CodeGen._gen_python_code": lines,
    "compile_forward": run,
}
"""An exercise -> what it can do now."""
