"""Dead code elimination of graphs that contain graphs."""

from __future__ import annotations

import torch

import fx


def users_function(x: torch.Tensor) -> torch.Tensor:
    """A function of which fx knows nothing."""
    return x


def parent_and_child() -> tuple[fx.GraphModule, fx.GraphModule]:
    """A graph that fetches a child, whose graph has dead calls."""
    inner = fx.Graph()
    x = inner.placeholder("x")
    inner.call_function(users_function, (x,))
    inner.call_function(torch.relu, (x,))
    inner.output(x)
    child = fx.GraphModule(torch.nn.Module(), inner)
    root = torch.nn.Module()
    root.child = child
    outer = fx.Graph()
    y = outer.placeholder("y")
    fetched = outer.get_attr("child")
    outer.output((y, fetched))
    parent = fx.GraphModule(root, outer)
    return parent, child


def targets(module: fx.GraphModule) -> list[object]:
    """What the calls of a module's graph call."""
    nodes = module.graph.nodes
    return [node.target for node in nodes if node.op == "call_function"]


def test_by_default_a_child_loses_what_is_pure_or_unknown() -> None:
    parent, child = parent_and_child()
    assert parent.graph.eliminate_dead_code()
    assert targets(child) == []


def test_what_is_unknown_is_kept_in_a_child_too() -> None:
    parent, child = parent_and_child()
    assert parent.graph.eliminate_dead_code(unknown="keep")
    assert targets(child) == [users_function]


def test_a_child_is_asked_about_with_the_callers_question() -> None:
    parent, child = parent_and_child()
    assert parent.graph.eliminate_dead_code(
        lambda node: (
            node.target is torch.relu or node.op in ("placeholder", "output")
        )
    )
    assert targets(child) == [torch.relu]
