"""Questions of stage 03: what does this print?"""

from __future__ import annotations

import torch

from fx.graph import Graph
from fx.proxy import GraphAppendingTracer, TraceError
from fx.use_def.values import AnyValue


def begin() -> tuple[Graph, AnyValue]:
    """A graph with the placeholder x, and a proxy for it."""
    graph = Graph()
    return graph, GraphAppendingTracer(graph).proxy(graph.placeholder("x"))


def bound_again() -> None:
    _, x = begin()
    y = x
    y += 1
    z = 10 - y
    print(x.node, y.node, z.node.args)


def late_fetch() -> None:
    graph, x = begin()
    shape = x.shape
    x.size()
    first = shape[0]
    print(*graph.nodes)
    print(first.node.args)


def tensor_first() -> None:
    graph, x = begin()
    ones = torch.ones(2)
    torch.add(ones, x)
    ones.add(x)
    ones + x
    x + ones
    print(*[node.op for node in graph.nodes][1:])


def between() -> None:
    graph, x = begin()
    try:
        print(2 < x < 5)
    except TraceError:
        print("TraceError")
    last = next(iter(reversed(graph.nodes)))
    print(last.name, last.args)


def a_text() -> None:
    graph, x = begin()
    text = f"{x} is a tensor: {isinstance(x, torch.Tensor)}"
    print(text, len(graph.nodes))
