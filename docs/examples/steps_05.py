"""Stage 05, step by step: each node of Residual becomes a line of code."""

from __future__ import annotations

from docs.machinery.film import Film
from fx.graph import Graph
from fx.tracing.tracer import Tracer
from stages.residual import Residual

SAY = {
    "x": "The placeholder x becomes a parameter, with its annotation.",
    "linear": "A module is called by its path from self.",
    "add": "The node add calls an operator, so its line is written with +. No "
    "later line uses linear and x, so this line sets them to None.",
    "relu": "A function is called by its name, and add is set to None.",
    "output": "The output becomes the return statement.",
}


def film() -> Film:
    """The lines of forward, in the order in which they are emitted."""
    steps = Film(code="Generated code")
    graph = Tracer().trace(Residual())
    steps.graph("The graph is complete, nothing is written.", graph)
    for number, node in enumerate(graph.nodes):
        code = lines_until(graph, number)
        steps.graph(SAY[node.name], graph, code=code, look=[node.name])
    return steps


def lines_until(graph: Graph, last: int) -> str:
    """The generated lines of the first nodes, the definition with them."""
    code = graph.python_code("self")
    lines = code.src.strip().splitlines()
    nodes = code._lineno_map or {}
    kept = [
        line
        for number, line in enumerate(lines)
        if number == 0 or (nodes.get(number) or 0) <= last
    ]
    return "\n".join(kept)
