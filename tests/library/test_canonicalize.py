"""Graphs in one order: what they compute stays, and the time is short."""

from __future__ import annotations

import random

import pytest
import torch

import fx
from fx.passes.canonicalize import (
    _canonical_node_key,
    _is_safe_to_reorder,
    canonicalize_graph,
    rename_nodes_to_canonical,
)
from fx.use_def.values import AnyValue
from tests.library.memory_programs import outcome, program, recipe_of


def key(node: fx.Node, places: dict[fx.Node, int]) -> AnyValue:
    """A key; inputs come first, by their names."""
    if node.op == "placeholder":
        return 0, str(node.target)
    return _canonical_node_key(node, places)


def backwards(node: fx.Node, places: dict[fx.Node, int]) -> AnyValue:
    """A key that puts what can be late last; inputs first."""
    return (node.op != "placeholder", -len(places), -id(node))


@pytest.mark.parametrize("by", [key, backwards])
def test_any_program_computes_what_it_did(by: AnyValue) -> None:
    drawn, moved = random.Random(0), 0
    for _ in range(300):
        gm = fx.GraphModule({}, program(recipe_of(drawn, 14)))
        before, expected = gm.code, outcome(gm)
        canonicalize_graph(gm.graph, by, _is_safe_to_reorder)
        gm.graph.lint()
        gm.recompile()
        moved += gm.code != before
        assert outcome(gm) == expected, f"{before}\n{gm.code}"
    assert moved > 100


def shuffled(seed: int) -> fx.Graph:
    """Some calls without effects, in one of many orders."""
    graph = fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    functions = [torch.sin, torch.cos, torch.exp, torch.tan, torch.neg]
    made = {f: [x, y] for f in functions}
    todo = [f for f in functions for _ in range(2)]
    random.Random(seed).shuffle(todo)
    for function in todo:
        made[function].append(
            graph.call_function(function, (made[function][-1],))
        )
    ends = [made[f][-1] for f in functions]
    graph.output(graph.call_function(torch.stack, (ends,)))
    return graph


def test_orders_of_one_program_have_one_form() -> None:
    graphs = [shuffled(seed) for seed in range(20)]
    assert len(set(map(str, graphs))) > 10
    for graph in graphs:
        canonicalize_graph(graph, key, _is_safe_to_reorder)
    assert len(set(map(str, graphs))) == 1


def test_what_may_have_an_effect_stays_in_its_place() -> None:
    def users(x: torch.Tensor) -> torch.Tensor:
        return x

    graph = fx.Graph()
    x = graph.placeholder("x")
    calls = [
        graph.call_function(torch.tan, (x,)),
        graph.call_function(users, (x,)),
        graph.call_function(torch.exp, (x,)),
        graph.call_function(torch.abs, (x,)),
        graph.call_module("missing", (x,)),
        graph.call_function(torch.cos, (x,)),
    ]
    graph.output(calls)
    safe = [_is_safe_to_reorder(node) for node in (x, *calls)]
    assert safe == [True, True, False, True, True, False, True]
    canonicalize_graph(graph, key, _is_safe_to_reorder)
    names = ["x", "tan", "users", "abs_1", "exp", "missing", "cos", "output"]
    assert [node.name for node in graph.nodes] == names


def test_an_empty_graph_and_one_without_an_output() -> None:
    graph = fx.Graph()
    assert canonicalize_graph(graph, key, _is_safe_to_reorder) == {}
    graph.get_attr("w")
    graph.call_function(torch.relu, (graph.placeholder("x"),))
    canonicalize_graph(graph, key, _is_safe_to_reorder)
    assert [node.name for node in graph.nodes] == ["x", "relu", "w"]


def test_names_that_are_kept_are_given_to_nobody_else() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    relu = graph.call_function(torch.relu, (x,))
    graph.call_method("relu", (x,)).name = "other"
    relu.name = "abc"
    graph.call_method("sin", (x,)).name = "relu"
    renamed = rename_nodes_to_canonical(graph, frozenset(["call_method"]))
    assert renamed == {"abc": "relu_1"}
    assert graph.call_function(torch.relu, (x,)).name == "relu_2"


def test_hooks_are_told_the_new_names() -> None:
    told: list[tuple[str, str, str]] = []
    gm = fx.symbolic_trace(lambda x: torch.relu(x) + 1)
    gm.graph.find_nodes(op="call_function", target=torch.relu)[0].name = "first"
    gm._register_replace_node_hook(
        lambda old, new, user: told.append((old.name, new, user.name))
    )
    rename_nodes_to_canonical(gm.graph)
    assert told == [("first", "relu", "add")]


def test_each_node_is_asked_about_once() -> None:
    graph = fx.Graph()
    value = graph.placeholder("x")
    for number in range(5000):
        item = graph.call_function(torch.chunk, (value, 2))
        kind = "add_" if number % 3 == 0 else "sin"
        value = graph.call_method(kind, (value, item))
    graph.output(value)
    asked: list[fx.Node] = []

    def noting(node: fx.Node, places: dict[fx.Node, int]) -> AnyValue:
        asked.append(node)
        return key(node, places)

    canonicalize_graph(graph, noting, _is_safe_to_reorder, group_getitems=True)
    assert len(asked) == len(set(asked)) == len(graph.nodes) - 1
