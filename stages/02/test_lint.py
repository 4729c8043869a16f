"""Stage 02: what lint says of arguments, and where values are read last."""

from __future__ import annotations

import operator
import re

import pytest
import torch

from fx.graph import Graph
from fx.node import Node
from fx.usedef.lint import Problem, problems
from fx.usedef.liveness import last_uses
from stages.checking import check, same


def residual() -> Graph:
    """Residual's graph, made by hand."""
    graph = Graph()
    x = graph.placeholder("x")
    linear = graph.call_module("linear", (x,))
    add = graph.call_function(operator.add, (linear, x))
    graph.output(graph.call_function(torch.relu, (add,)))
    return graph


def find(graph: Graph, name: str) -> Node:
    """The node of that name."""
    return next(node for node in graph.nodes if node.name == name)


def said_of(graph: Graph, reader: str, read: str) -> list[Problem]:
    """The problems at a node whose message names it and the other one."""
    return [
        problem
        for problem in problems(graph)
        if str(problem.node) == reader
        and re.search(rf"\b{reader}\b", problem.message)
        and re.search(rf"\b{read}\b", problem.message)
    ]


# -- lint --------------------------------------------------------------------


@pytest.mark.exercise("usedef.lint._uses")
def test_nothing_is_wrong_with_residual() -> None:
    found = [problem.message for problem in problems(residual())]
    same(found, [], "Residual is a correct program: lint must find nothing.")


@pytest.mark.exercise("usedef.lint._uses")
def test_a_value_must_be_defined_before_it_is_used() -> None:
    graph = residual()
    find(graph, "linear").prepend(find(graph, "add"))
    check(
        said_of(graph, "add", "linear"),
        "add was moved before linear and reads it, before it is computed. "
        "Yield a Problem at add whose message names add and linear.",
    )


@pytest.mark.exercise("usedef.lint._uses")
def test_every_fault_is_found_not_only_the_first() -> None:
    graph = residual()
    x = find(graph, "x")
    find(graph, "output").prepend(x)
    check(
        said_of(graph, "linear", "x") and said_of(graph, "add", "x"),
        "x was moved behind linear and add, which both read it: two faults. "
        "The verifier goes on after the first, and names both nodes.",
    )
    both = residual()
    add = find(both, "add")
    find(both, "x").prepend(add)
    check(
        said_of(both, "add", "linear") and said_of(both, "add", "x"),
        "add was moved before linear and x and reads both: these are two "
        "faults, and each is reported.",
    )


@pytest.mark.exercise("usedef.lint._uses")
def test_a_node_cannot_read_itself() -> None:
    graph = residual()
    add = find(graph, "add")
    add.args = (add, 1)
    check(
        said_of(graph, "add", "add"),
        "add reads its own value, which is not there yet: a value must be "
        "defined strictly before its user.",
    )


@pytest.mark.exercise("usedef.lint._uses")
def test_an_argument_that_was_erased() -> None:
    graph = residual()
    graph.nodes.erase(find(graph, "add"))
    check(
        said_of(graph, "relu", "add"),
        "add was taken out of the list, behind the graph's back, and relu "
        "reads it still: yield a Problem at relu that names both.",
    )


@pytest.mark.exercise("usedef.lint._uses")
def test_an_argument_of_another_graph() -> None:
    graph = residual()
    relu, stranger = find(graph, "relu"), find(residual(), "linear")
    relu._args, relu._inputs = (stranger,), (stranger,)
    stranger.users[relu] = None
    check(
        said_of(graph, "relu", "linear"),
        "relu reads a node of another graph, linear: yield a Problem at relu "
        "that names both.",
    )


@pytest.mark.exercise("usedef.lint._uses")
def test_the_place_of_a_foreign_node_says_nothing() -> None:
    graph = residual()
    linear, stranger = find(graph, "linear"), find(residual(), "relu")
    linear._args, linear._inputs = (stranger,), (stranger,)
    stranger.users[linear] = None
    same(
        len(said_of(graph, "linear", "relu")),
        1,
        "linear reads the relu of another graph, which is one fault, "
        "reported once. The foreign node stands late in *its* list, which "
        "is no fault here: do not ask for its place.",
    )


@pytest.mark.exercise("usedef.lint._uses")
def test_the_sentinel_has_no_value() -> None:
    graph = residual()
    relu, root = find(graph, "relu"), graph._root
    relu._args, relu._inputs = (root,), (root,)
    root.users[relu] = None
    found = [p for p in problems(graph) if p.node is relu]
    check(
        found,
        "relu reads the sentinel, which closes the ring and has no value: "
        "its order key is 0, that of a real node is greater.",
    )


@pytest.mark.exercise("usedef.lint._uses")
def test_a_value_must_know_its_user() -> None:
    graph = residual()
    del find(graph, "x").users[find(graph, "add")]
    check(
        said_of(graph, "add", "x"),
        "add reads x and is missing in x.users: an edge is there at one end "
        "only. Yield a Problem at add that names both.",
    )
    late = residual()
    x = find(late, "x")
    del x.users[find(late, "linear")]
    find(late, "output").prepend(x)
    same(
        len(said_of(late, "linear", "x")),
        2,
        "x stands behind linear, which reads it, and linear is missing in "
        "x.users. These are two faults: the last question is asked in any "
        "case.",
    )
    foreign = residual()
    linear, stranger = find(foreign, "linear"), find(residual(), "x")
    linear._args, linear._inputs = (stranger,), (stranger,)
    check(
        len(said_of(foreign, "linear", "x")) == 2,
        "linear reads a node of another graph, and is not among its users: "
        "two faults. The last question is asked of a foreign node too.",
    )


# -- last uses ---------------------------------------------------------------


def freed(graph: Graph, *, in_order: bool = False) -> dict[str, list[str]]:
    """What `last_uses` says, by name; each list sorted, if not in order."""
    found = last_uses(graph.nodes)
    lists = {
        user.name: [node.name for node in found[user]]
        for user in graph.nodes
        if user in found
    }
    if in_order:
        return lists
    return {user: sorted(read) for user, read in lists.items()}


@pytest.mark.exercise("usedef.liveness.last_uses")
def test_where_the_values_of_residual_are_read_last() -> None:
    same(
        freed(residual()),
        {"add": ["linear", "x"], "relu": ["add"], "output": ["relu"]},
        "x is read by linear and then by add: add is the last. linear reads "
        "nothing for the last time and has no entry.",
    )


@pytest.mark.exercise("usedef.liveness.last_uses")
def test_the_last_user_is_the_last_in_the_program() -> None:
    graph = residual()
    x, linear = find(graph, "x"), find(graph, "linear")
    with graph.inserting_before(linear):
        neg = graph.call_function(torch.neg, (x,))
    find(graph, "relu").args = (find(graph, "add"), neg)
    same(
        freed(graph),
        {"add": ["linear", "x"], "relu": ["add", "neg"], "output": ["relu"]},
        "neg was made last and put before linear: it is the last among the "
        "users of x, but the second line of the program. What counts is who "
        "comes last in the program.",
    )


@pytest.mark.exercise("usedef.liveness.last_uses")
def test_a_value_that_is_read_twice_by_its_last_user() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    mul = graph.call_function(torch.mul, (x, x))
    graph.output([mul, mul])
    same(
        freed(graph),
        {"mul": ["x"], "output": ["mul"]},
        "mul(x, x) reads x twice and frees it once.",
    )


@pytest.mark.exercise("usedef.liveness.last_uses")
def test_a_value_that_nobody_reads() -> None:
    graph = residual()
    graph.placeholder("unused")
    read = [name for names in freed(graph).values() for name in names]
    check(
        "unused" not in read and "output" not in read,
        "A value that nobody reads has no last user and is in no list.",
    )


@pytest.mark.exercise("usedef.liveness.last_uses")
def test_each_value_is_freed_exactly_once() -> None:
    graph = Graph()
    a, b, c = (graph.placeholder(name) for name in "abc")
    one = graph.call_function(torch.cat, ([c, a, b],))
    two = graph.call_function(torch.cat, ([b, one, a],))
    graph.output((two, a))
    same(
        freed(graph),
        {"cat": ["c"], "cat_1": ["b", "cat"], "output": ["a", "cat_1"]},
        "Each value is in exactly one list, that of its last reader.",
    )
    same(
        freed(graph, in_order=True),
        {"cat": ["c"], "cat_1": ["b", "cat"], "output": ["cat_1", "a"]},
        "The right values are in each list, in another order than that of "
        "the reader's inputs.",
    )
