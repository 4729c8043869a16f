"""Stage 03, step by step: operators and methods of a proxy are recorded."""

from __future__ import annotations

from typing import Any, TypeAlias

from docs.machinery.film import Film, code_of, frame_spot
from fx.graph import Graph
from fx.node import Node
from fx.proxy import GraphAppendingTracer, Proxy

AnyValue: TypeAlias = Any
"""What a program computes with: anything."""


def program(a: AnyValue, b: AnyValue) -> AnyValue:
    """Plain Python; nothing here knows of proxies."""
    doubled = 2 * b
    return (a + doubled).relu()[0]


class Watching(GraphAppendingTracer):
    """A tracer that takes a shot whenever a node is made."""

    def __init__(self, graph: Graph, film: Film) -> None:
        super().__init__(graph)
        self.film = film

    def create_node(self, *args: AnyValue, **kwargs: AnyValue) -> Node:
        """Make the node, and take a shot of the graph with it."""
        node = super().create_node(*args, **kwargs)
        say = f"{node.op}: {node.name} is recorded, and a proxy of it returned."
        spot = frame_spot(code_of(program))
        self.film.graph(say, self.graph, at=spot)
        return node


def film() -> Film:
    """Python calls the operators' methods; each makes a node."""
    steps = Film("docs.examples.steps_03.program")
    graph = Graph()
    tracer = Watching(graph, steps)
    proxies = [Proxy(graph.placeholder(name), tracer) for name in ("a", "b")]
    steps.graph("Two proxies, each with a node of its own.", graph)
    result: Proxy = program(*proxies)
    graph.output(result.node)
    steps.graph(
        "The node of the proxy that is returned is the output's argument.",
        graph,
    )
    return steps
