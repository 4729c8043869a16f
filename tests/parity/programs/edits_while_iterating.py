"""Editing a graph while walking over its nodes, forwards and backwards."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterator
from typing import TypeAlias

import torch

from tests.parity.harness import Lib, Made, Seen, names, program
from tests.parity.programs.linked_list_graph import letters

Nodes: TypeAlias = dict[str, Made]
Act: TypeAlias = Callable[[Made, Nodes, Made], object]
"""What is done to (graph, its first nodes by name, the current node)."""


def walk(way: Iterator[Made], act: Callable[[Made], object]) -> list[str]:
    """The names a loop meets that acts on each node; 30 at most."""
    met = []
    for node in way:
        met.append(node.name)
        if len(met) == 30:
            return [*met, "…"]
        act(node)
    return met


def is_node(g: Made, link: Made) -> bool:
    """Whether a link is no sentinel and no erased node."""
    return link is not g._root and not link._erased


def erase_the_current_node_twice_and_insert_once(
    g: Made, by_name: Nodes, n: Made
) -> None:
    if n.name in "bd":
        g.erase_node(n)
    if n.name == "c":
        with g.inserting_after(n):
            g.placeholder("new")


def erase_every_node_as_it_comes(g: Made, by_name: Nodes, n: Made) -> None:
    g.erase_node(n)


def erase_the_next_node(g: Made, by_name: Nodes, n: Made) -> None:
    if is_node(g, n.next):
        g.erase_node(n.next)


def erase_the_previous_node(g: Made, by_name: Nodes, n: Made) -> None:
    if is_node(g, n.prev):
        g.erase_node(n.prev)


def erase_current_and_both_neighbours(g: Made, by_name: Nodes, n: Made) -> None:
    if n.name == "c":
        for letter in "bcd":
            g.erase_node(by_name[letter])


def erase_current_then_what_its_old_links_lead_to(
    g: Made, by_name: Nodes, n: Made
) -> None:
    if n.name == "c":
        for letter in "cdb":
            g.erase_node(by_name[letter])


def erase_everything_at_the_first_node(
    g: Made, by_name: Nodes, n: Made
) -> None:
    for node in list(g.nodes):
        g.erase_node(node)


def insert_after_the_current_node(g: Made, by_name: Nodes, n: Made) -> None:
    if n.name in by_name:
        with g.inserting_after(n):
            g.placeholder(f"{n.name}_after")


def insert_before_the_current_node(g: Made, by_name: Nodes, n: Made) -> None:
    if n.name in by_name:
        with g.inserting_before(n):
            g.placeholder(f"{n.name}_before")


def inserting_after_each_node_it_meets_never_ends(
    g: Made, by_name: Nodes, n: Made
) -> None:
    with g.inserting_after(n):
        g.placeholder("again")


def insert_at_both_ends(g: Made, by_name: Nodes, n: Made) -> None:
    if n.name == "c":
        g.placeholder("last")
        with g.inserting_before():
            g.placeholder("first")


def insert_where_the_erased_current_node_was(
    g: Made, by_name: Nodes, n: Made
) -> None:
    if n.name == "c":
        g.erase_node(n)
        with g.inserting_after(by_name["b"]):
            g.placeholder("instead")


def move_the_current_node_one_place_later(
    g: Made, by_name: Nodes, n: Made
) -> None:
    if n.name == "b":
        by_name["c"].append(n)


def move_the_current_node_one_place_earlier(
    g: Made, by_name: Nodes, n: Made
) -> None:
    if n.name == "c" and not n.meta:
        n.meta["moved"] = True
        by_name["b"].prepend(n)


def move_the_current_node_to_the_end(g: Made, by_name: Nodes, n: Made) -> None:
    if n.name == "b" and not n.meta:
        n.meta["moved"] = True
        by_name["e"].append(n)


def move_the_current_node_to_the_start(
    g: Made, by_name: Nodes, n: Made
) -> None:
    if n.name == "d" and not n.meta:
        n.meta["moved"] = True
        by_name["a"].prepend(n)


def move_the_next_node_away(g: Made, by_name: Nodes, n: Made) -> None:
    if n.name == "b":
        by_name["e"].append(by_name["c"])
    if n.name == "d":
        by_name["a"].prepend(by_name["c"])


def erase_current_and_move_what_stood_behind_it(
    g: Made, by_name: Nodes, n: Made
) -> None:
    if n.name == "b":
        g.erase_node(n)
        by_name["e"].append(by_name["c"])


def move_a_node_that_was_met_ahead_of_the_loop(
    g: Made, by_name: Nodes, n: Made
) -> None:
    if n.name == "c" and by_name["a"] < n < by_name["e"]:
        by_name["e"].append(by_name["a"])


ACTS: tuple[Act, ...] = (
    erase_the_current_node_twice_and_insert_once,
    erase_every_node_as_it_comes,
    erase_the_next_node,
    erase_the_previous_node,
    erase_current_and_both_neighbours,
    erase_current_then_what_its_old_links_lead_to,
    erase_everything_at_the_first_node,
    insert_after_the_current_node,
    insert_before_the_current_node,
    inserting_after_each_node_it_meets_never_ends,
    insert_at_both_ends,
    insert_where_the_erased_current_node_was,
    move_the_current_node_one_place_later,
    move_the_current_node_one_place_earlier,
    move_the_current_node_to_the_end,
    move_the_current_node_to_the_start,
    move_the_next_node_away,
    erase_current_and_move_what_stood_behind_it,
    move_a_node_that_was_met_ahead_of_the_loop,
)


@program(
    claims=("nodes-mutation-while-iterating", "node-append", "node-prepend")
)
def what_loops_meet_and_leave_forwards_and_back(lib: Lib) -> Seen:
    ways: tuple[Callable[[Made], Iterator[Made]], ...] = (iter, reversed)
    seen: dict[str, list[Seen]] = {}
    for act, way in itertools.product(ACTS, ways):
        g, *nodes = letters(lib, "abcde")
        do = functools.partial(act, g, {n.name: n for n in nodes})
        met = walk(way(g.nodes), do)
        left = (names(g.nodes), names(reversed(g.nodes)), len(g.nodes))
        in_order = names(sorted(g.nodes)) == names(g.nodes)
        seen.setdefault(act.__name__, []).append((met, left, in_order))
    return seen


@program(claims=("node-list-cpp-iterator", "nodes-mutation-while-iterating"))
def an_iterator_standing_on_an_erased_node_walks_on(lib: Lib) -> Seen:
    g, a, b, c, d = letters(lib, "abcd")
    there, back = iter(g.nodes), reversed(g.nodes)
    seen = [next(there).name, next(there).name, next(back).name]
    for node in (b, d):
        g.erase_node(node)
    return seen, names(there), names(back), names([a, c])


@program(claims=("node-list-cpp-iterator", "nodes-mutation-while-iterating"))
def an_iterator_at_the_last_node_meets_what_is_added(lib: Lib) -> Seen:
    g, *_ = letters(lib, "ab")
    there = iter(g.nodes)
    seen = [next(there).name, next(there).name]
    g.placeholder("c")
    return seen, names(there)


@program(claims=("node-list-cpp-iterator", "nodes-mutation-while-iterating"))
def an_iterator_looks_at_the_list_when_it_is_asked(lib: Lib) -> Seen:
    g = lib.Graph()
    there = iter(g.nodes)
    g.placeholder("late")
    return names(there)


@program(claims=("nodes-mutation-while-iterating", "inserting-after"))
def double_all_additions_in_one_walk(lib: Lib) -> Seen:
    g = lib.Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    total = g.call_function(operator.add, (x, y))
    total = g.call_function(operator.add, (total, y))
    g.output(total)
    met = []
    for node in g.nodes:
        met.append(node.name)
        if node.target is operator.add:
            with g.inserting_after(node):
                new = g.call_function(operator.mul, (node, 2))
            node.replace_all_uses_with(new, lambda u, new=new: u is not new)
    g.lint()
    return met, str(g)


@program(claims=("nodes-mutation-while-iterating", "erase-updates-producers"))
def erase_a_dead_chain_walking_backwards(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    g.output(x)
    value = x
    for op in (torch.relu, torch.abs, torch.neg):
        value = g.call_function(op, (value,))
    for node in reversed(g.nodes):
        if node.op == "call_function" and not node.users:
            g.erase_node(node)
    return names(g.nodes), names(x.users)


@program(claims=("nodes-mutation-while-iterating",))
def users_may_not_change_under_a_loop_over_them(lib: Lib) -> Seen:
    g = lib.Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    calls = [g.call_function(torch.relu, (x,)) for _ in range(3)]
    try:
        for user in x.users:
            user.replace_input_with(x, y)
    except RuntimeError as raised:
        return str(raised), names(x.users), names(y.users), names(calls)
    return "no error", names(x.users)
