"""What the tests of generated code share: graphs, and ways to run them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import fx
from fx.graph import Graph
from fx.use_def.protocols import PythonCode

Lib: TypeAlias = Any
"""`torch.fx` or `fx`."""

AnyValue: TypeAlias = Any

Build: TypeAlias = Callable[[Lib, Lib], None]
"""Fills a graph: called with the library and a new graph of it."""


def written(build: Build, lib: Lib, **options: AnyValue) -> AnyValue:
    """What `lib` generates for the graph that `build` makes."""
    graph = lib.Graph()
    build(lib, graph)
    return graph.python_code("self", **options)


def torch_text(code: AnyValue) -> str:
    """The text of torch.fx, with our name for its `wrap`."""
    source: str = code.src
    return source.replace("torch.fx._symbolic_trace.wrap", "wrap")


def lines_of(code: PythonCode) -> list[str]:
    """The lines of a function's body."""
    return [line.strip() for line in code.src.strip().split("\n")[1:]]


def body(build: Build) -> list[str]:
    """The lines of the body that fx generates."""
    return lines_of(written(build, fx))


def function(code: PythonCode) -> Callable[..., AnyValue]:
    """The function of generated code, defined."""
    namespace = dict(code.globals)
    source = compile(code.src, "<generated>", "exec", dont_inherit=True)
    exec(source, namespace)
    forward: Callable[..., AnyValue] = namespace["forward"]
    return forward


def run(graph: Graph, *args: AnyValue, root: AnyValue = None) -> AnyValue:
    """What the code of a graph returns."""
    return function(graph.python_code("self"))(root, *args)


def node_of_line(graph: Graph, code: PythonCode) -> dict[str, str | None]:
    """Line of text -> name of the node that the line map gives for it."""
    names = [node.name for node in graph.nodes]
    assert code._lineno_map is not None
    all_lines = code.src.split("\n")
    lines = range(min(code._lineno_map), max(code._lineno_map) + 1)
    assert [*code._lineno_map] == [*lines]
    assert code._prologue_start + lines[-1] == len(all_lines)
    found: dict[str, str | None] = {}
    for line, index in code._lineno_map.items():
        text = all_lines[code._prologue_start + line - 1].strip()
        found[text] = None if index is None else names[index]
    return found


def overview(lib: Lib, graph: Lib) -> None:
    x = graph.placeholder("x")
    param = graph.get_attr("param")
    add = graph.call_function(operator.add, (x, param))
    linear = graph.call_module("linear", (add,))
    limits = {"min": 0.0, "max": 1.0}
    graph.output(graph.call_method("clamp", (linear,), limits))
