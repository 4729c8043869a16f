"""Where new nodes land, and what creating one does."""

from __future__ import annotations

import torch

from tests.parity.harness import Lib, Made, Seen, error, names, program
from tests.parity.programs.linked_list_graph import letters


@program(claims=("inserting-before",))
def inserting_before_keeps_the_order_of_creation(lib: Lib) -> Seen:
    g, _a, b = letters(lib, "ab")
    with g.inserting_before(b):
        for letter in "uvw":
            g.placeholder(letter)
    return names(g.nodes), names(reversed(g.nodes)), len(g.nodes)


@program(claims=("inserting-after",))
def inserting_after_reverses_the_order_of_creation(lib: Lib) -> Seen:
    g, a, _b = letters(lib, "ab")
    seen = []
    with g.inserting_after(a):
        for letter in "uvw":
            g.placeholder(letter)
            seen.append(names(g.nodes))
    return seen, names(reversed(g.nodes))


@program(claims=("inserting-without-node",))
def inserting_without_a_node_means_the_ends(lib: Lib) -> Seen:
    g, *_ = letters(lib, "ab")
    with g.inserting_before():
        g.placeholder("first")
    with g.inserting_after():
        g.placeholder("last")
    with g.inserting_before(None), g.inserting_after(None):
        g.placeholder("very_last")
    return names(g.nodes), names(reversed(g.nodes))


@program(claims=("inserting-without-node",))
def several_creations_at_the_ends(lib: Lib) -> Seen:
    g, *_ = letters(lib, "ab")
    with g.inserting_before():
        for letter in "uv":
            g.placeholder(letter)
    with g.inserting_after():
        for letter in "yz":
            g.placeholder(letter)
    return names(g.nodes)


@program(claims=("inserting-without-node",))
def inserting_into_an_empty_graph(lib: Lib) -> Seen:
    g, h = lib.Graph(), lib.Graph()
    with g.inserting_before():
        g.placeholder("a")
    with h.inserting_after():
        h.placeholder("b")
    return names(g.nodes), names(h.nodes), names(reversed(h.nodes))


@program(claims=("insert-point-restores",))
def nested_blocks_restore_the_outer_point(lib: Lib) -> Seen:
    g, a, b, c = letters(lib, "abc")
    with g.inserting_before(b):
        g.placeholder("u")
        with g.inserting_after(c):
            g.placeholder("v")
            with g.inserting_before(a):
                g.placeholder("w")
            g.placeholder("x")
        g.placeholder("y")
    g.placeholder("z")
    return names(g.nodes)


@program(claims=("insert-point-restores",))
def a_block_that_raises_restores_the_point(lib: Lib) -> Seen:
    g, a, b = letters(lib, "ab")

    def fail() -> None:
        with g.inserting_before(b), g.inserting_after(a):
            g.placeholder("u")
            raise KeyError("stop")

    raised = error(fail)
    g.placeholder("v")
    return raised, names(g.nodes), g._insert == g._root.prepend


@program(claims=("insert-point-restores", "insert-point-swaps-hook"))
def a_block_entered_twice_restores_twice(lib: Lib) -> Seen:
    g, _a, b = letters(lib, "ab")
    point = g.inserting_before(b)
    for letter in "uv":
        with point:
            g.placeholder(letter)
    return names(g.nodes)


@program(claims=("insert-point-permanent",))
def a_plain_call_moves_the_point_for_good(lib: Lib) -> Seen:
    g, x, y = letters(lib, "xy")
    g.inserting_before(y)
    for letter in "uv":
        g.placeholder(letter)
    seen = [names(g.nodes)]
    g.inserting_after(x)
    g.placeholder("w")
    seen.append(names(g.nodes))
    g.inserting_after()
    g.placeholder("z")
    return [*seen, names(g.nodes)]


@program(claims=("insert-point-permanent", "insert-point-restores"))
def a_block_restores_a_permanent_point(lib: Lib) -> Seen:
    g, a, b = letters(lib, "ab")
    g.inserting_before(a)
    with g.inserting_after(b):
        g.placeholder("u")
    g.placeholder("v")
    return names(g.nodes)


@program(claims=("insert-point-permanent",))
def the_point_moves_with_its_node(lib: Lib) -> Seen:
    g, a, b, c = letters(lib, "abc")
    g.inserting_before(b)
    g.placeholder("u")
    c.append(b)
    g.placeholder("v")
    a.prepend(b)
    g.placeholder("w")
    return names(g.nodes)


@program(claims=("insert-point-swaps-hook",))
def the_point_is_taken_before_the_block_is_entered(lib: Lib) -> Seen:
    g, x, y = letters(lib, "xy")
    point = g.inserting_after(x)
    taken = g._insert == x.append
    entered = point.__enter__()
    g.placeholder("new")
    left = point.__exit__(None, None, None)
    other = g.inserting_before(y)
    before = g._insert == y.prepend
    other.__exit__(None, None, None)
    back = g._insert == g._root.prepend
    return taken, entered, left, before, back, names(g.nodes)


@program(
    claims=("insert-point-swaps-hook",),
    differs="private-names",
    ours=("InsertPoint", False),
)
def class_of_an_insert_point(lib: Lib) -> Seen:
    point = lib.Graph().inserting_before()
    return type(point).__name__, hasattr(lib.graph, "_InsertPoint")


@program(claims=("inserting-before", "inserting-after"))
def points_in_another_graph_are_refused(lib: Lib) -> Seen:
    g, _a = letters(lib, "a")
    _h, other = letters(lib, "b")
    raised = [
        error(lambda: g.inserting_before(other), chars=39),
        error(lambda: g.inserting_after(other), chars=38),
    ]
    g.placeholder("c")
    return raised, names(g.nodes)


@program(claims=("create-node-steps",))
def creation_calls_the_insert_hook_once(lib: Lib) -> Seen:
    g, x = letters(lib, "x")
    calls: list[Made] = []
    place = g._root.prepend

    def record(node: Made) -> None:
        calls.append((node.name, len(g.nodes)))
        place(node)

    g._insert = record
    relu = g.call_function(torch.relu, (x,))
    found = names(g.find_nodes(op="call_function", target=torch.relu))
    counts = [len(g.nodes)]
    g.erase_node(relu)
    gone = names(g.find_nodes(op="call_function", target=torch.relu))
    return calls, found, gone, [*counts, len(g.nodes)]


@program(claims=("create-node-steps", "create-helpers-per-opcode"))
def args_and_kwargs_may_be_left_out(lib: Lib) -> Seen:
    g = lib.Graph()
    made = [
        g.create_node("call_function", torch.rand),
        g.create_node("call_function", torch.rand, None, None),
        g.call_module("m"),
        g.call_method("size"),
        g.call_function(len),
        g.get_attr("w"),
        g.placeholder("x"),
    ]
    return [(n.name, n.args, dict(n.kwargs), n.type) for n in made]


@program(claims=("create-helpers-per-opcode", "opcode-six-kinds"))
def the_six_helpers_land_at_the_insert_point_in_order(lib: Lib) -> Seen:
    g, _a, b = letters(lib, "ab")
    with g.inserting_before(b):
        x = g.placeholder("x")
        g.get_attr("weight")
        g.call_function(torch.relu, (x,), {"inplace": False})
        g.call_method("view", (x, -1), {})
        g.call_module("layer", (x,))
        g.output(x)
    return names(g.nodes), [n.op for n in g.nodes], str(g)


def counting(lib: Lib) -> tuple[Made, list[str]]:
    """A graph, and the opcodes that its create_node is called with."""
    calls: list[str] = []

    class Counting(lib.Graph):  # type: ignore[misc]
        def create_node(self, op: str, *args: object, **kw: object) -> Made:
            calls.append(op)
            return super().create_node(op, *args, **kw)

    return Counting(), calls


@program(claims=("create-node-single-entry",))
def all_creation_goes_through_create_node(lib: Lib) -> Seen:
    g, calls = counting(lib)
    x = g.placeholder("x")
    g.get_attr("w")
    relu = g.call_function(torch.relu, (x,))
    g.call_method("size", (x,))
    g.call_module("m", (x,))
    g.node_copy(relu)
    g.output(relu)
    made = len(calls)
    source = lib.Graph()
    source.call_function(torch.abs, (source.placeholder("y"),))
    g.graph_copy(source, {})
    return calls, made, len(g.nodes)


@program(claims=("create-node-single-entry",))
def a_proxy_operation_creates_one_node_through_create_node(lib: Lib) -> Seen:
    g, calls = counting(lib)
    proxy = lib.Proxy(g.placeholder("x"))
    total = proxy + 1
    calls.append("|")
    torch.relu(total).neg()
    return calls, names(g.nodes)
