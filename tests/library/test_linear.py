"""Tracing, editing, matching and saving take time that grows with the graph.

Counted are the functions that are called, which a busy machine does not change.
A graph is eight times as large as another; a constant part, and logarithms,
leave the ratio near eight, and anything quadratic brings it to 64.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import fx
from fx.passes.utils.matcher_utils import SubgraphMatcher
from fx.use_def.values import AnyValue
from tests.library.counted import calls

Act = Callable[[], object]


def graph_of(size: int) -> fx.Graph:
    """A chain of three kinds of calls, with about so many nodes."""
    graph = fx.Graph()
    value = graph.placeholder("x")
    for _ in range(size // 3):
        value = graph.call_function(torch.relu, (value,))
        value = graph.call_method("clamp", (value,), {"max": 8})
        value = graph.call_function(torch.add, (value, 1))
    graph.output(value)
    return graph


def tracing(size: int, folder: Path) -> Act:
    """Trace a chain of functions and operators."""

    def root(x: AnyValue) -> AnyValue:
        for _ in range(size // 2):
            x = torch.relu(x) + 1
        return x

    return lambda: fx.Tracer().trace(root)


def editing(size: int, folder: Path) -> Act:
    """Replace every third node; insert all over at one place; clean up."""
    graph = graph_of(size)

    def edit() -> None:
        for node in graph.find_nodes(op="call_method"):
            with graph.inserting_before(node):
                new = graph.call_function(torch.abs, node.args)
            node.replace_all_uses_with(new)
            graph.erase_node(node)
        with graph.inserting_before(graph.output_node()):
            for _ in range(size):
                graph.call_function(torch.sin, (graph.output_node().args[0],))
        graph.eliminate_dead_code()
        graph.lint()

    return edit


def matching(size: int, folder: Path) -> Act:
    """Find a pattern that is there once for each three nodes."""
    graph = graph_of(size)
    pattern = fx.Tracer().trace(lambda x: torch.relu(x).clamp(max=8))
    matcher = SubgraphMatcher(pattern)

    def match() -> None:
        assert len(matcher.match(graph)) == size // 3

    return match


def saving(size: int, folder: Path) -> Act:
    """Save a graph and load it."""
    gm = fx.GraphModule(torch.nn.Module(), graph_of(size))

    def save() -> None:
        fx.save(gm, folder / str(size))
        fx.load(folder / str(size))

    return save


@pytest.mark.parametrize("make", [tracing, editing, matching, saving])
def test_calls_grow_as_the_graph_does(
    make: Callable[[int, Path], Act], tmp_path: Path
) -> None:
    make(30, tmp_path)()  # what is found once in a process
    few, many = (
        calls(make(size, tmp_path), "call", "c_call") for size in (240, 1_920)
    )
    assert few < many < 9 * few
