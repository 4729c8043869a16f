"""One order and one set of names for graphs that compute the same."""

from __future__ import annotations

import operator
from importlib import import_module
from typing import Any, TypeAlias

import torch

from tests.parity.harness import Lib, Seen, error, names, program

AnyValue: TypeAlias = Any


def canonicalize(lib: Lib) -> AnyValue:
    """The module of one of the libraries."""
    return import_module(f"{lib.__name__}.passes.canonicalize")


def is_safe(node: AnyValue) -> bool:
    """Whether a node writes nothing, by its name."""
    return not (node.op == "call_method" and node.target.endswith("_"))


def one_form(lib: Lib, graph: AnyValue, **options: AnyValue) -> Seen:
    """A graph in its one form; inputs stay in their order."""
    inputs = [n for n in graph.nodes if n.op == "placeholder"]

    def key(node: AnyValue, places: dict[AnyValue, int]) -> AnyValue:
        if node.op == "placeholder":
            return 0, inputs.index(node)
        return canonicalize(lib)._canonical_node_key(node, places)

    act = canonicalize(lib).canonicalize_graph
    renamed = act(graph, key, is_safe, **options)
    return str(graph), renamed


@program(newest=True)
def two_orders_of_one_program(lib: Lib) -> Seen:
    def one(x: AnyValue, y: AnyValue) -> AnyValue:
        a, b = torch.sin(x), torch.cos(y)
        return a * b - torch.cos(x)

    def other(x: AnyValue, y: AnyValue) -> AnyValue:
        c = torch.cos(x)
        b, a = torch.cos(y), torch.sin(x)
        return a * b - c

    seen = [one_form(lib, lib.symbolic_trace(f).graph) for f in (one, other)]
    return *seen, seen[0][0] == seen[1][0]  # type: ignore[index]


@program(newest=True)
def calls_stay_around_those_that_must_not_move(lib: Lib) -> Seen:
    def f(x: AnyValue, y: AnyValue) -> AnyValue:
        z = torch.tan(x)
        b = torch.neg(x)
        x.add_(b)
        c, a = torch.sin(x), torch.abs(y)
        y.mul_(a)
        return torch.exp(y), c, z

    return one_form(lib, lib.symbolic_trace(f).graph)


@program(newest=True)
def attributes_are_fetched_late(lib: Lib) -> Seen:
    g = lib.Graph()
    u, w, b = map(g.get_attr, ("unused", "w", "a.b"))
    x = g.placeholder("x")
    y = g.call_module("layer.0", (x,))
    y = g.call_function(torch.add, (g.call_function(torch.mul, (y, w)), b))
    g.output(g.call_function(torch.add, (y, w)))
    return one_form(lib, g), u.name


@program(newest=True)
def items_behind_what_they_are_of(lib: Lib) -> Seen:
    def graph() -> AnyValue:
        g = lib.Graph()
        x = g.placeholder("x")
        parts = g.call_function(torch.split, (x, 1))
        last, first, inner = (
            g.call_function(operator.getitem, (parts, index))
            for index in (2, 0, 1)
        )
        inner = g.call_function(operator.getitem, (inner, slice(1)))
        y = g.call_function(torch.add, (first, last))
        g.output([y, inner])
        return g

    return [one_form(lib, graph(), group_getitems=g) for g in (False, True)]


@program(
    differs="canonicalize-items", ours=["x", "add_", "getitem"], newest=True
)
def items_of_what_is_written(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    g.call_method("add_", (x, 1))
    g.output(g.call_function(operator.getitem, (x, [0, 1])))
    one_form(lib, g, group_getitems=True)
    return names(g.nodes)[:-1]


@program(newest=True)
def names_after_the_targets(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    x.name = "input_x"
    add = g.create_node("call_function", torch.add, (x, x), {}, "total")
    sub = g.call_method("toUpper", (add,))
    sub.name, add.name = "add", "to_upper"
    g.output(g.call_module("a.0", (sub,)))
    rename = canonicalize(lib).rename_nodes_to_canonical
    kept = rename(g, frozenset(("placeholder",)))
    seen = str(g), kept, rename(g), rename(g), names(g.nodes)
    g.call_function(torch.add, (x, x))
    return *seen, names(g.nodes)


@program(newest=True)
def nodes_that_wait_for_each_other(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    a = g.call_function(torch.neg, (x,))
    b = g.call_function(torch.neg, (a,))
    a.args = (b,)
    g.output(b)
    failed = error(lambda: one_form(lib, g))
    return failed, names(g.nodes)


@program(newest=True)
def no_key_for_inputs(lib: Lib) -> Seen:
    x = lib.Graph().placeholder("x")
    key = canonicalize(lib)._canonical_node_key
    return error(lambda: key(x, {}))
