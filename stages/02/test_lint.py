"""Stage 02: what lint finds in arguments, and the last user of each value."""

from __future__ import annotations

import operator
import re

import pytest
import torch

from fx.graph import Graph
from fx.node import Node
from fx.use_def.lint import Problem, last_users, problems
from stages.checking import check, same


def residual() -> Graph:
    """Residual's graph, built node by node."""
    graph = Graph()
    x = graph.placeholder("x")
    linear = graph.call_module("linear", (x,))
    add = graph.call_function(operator.add, (linear, x))
    graph.output(graph.call_function(torch.relu, (add,)))
    return graph


def find(graph: Graph, name: str) -> Node:
    """The node of that name."""
    return next(node for node in graph.nodes if node.name == name)


def said_of(graph: Graph, user: str, used: str) -> list[Problem]:
    """The problems at the node `user` whose message names both nodes."""
    return [
        problem
        for problem in problems(graph)
        if str(problem.node) == user
        and re.search(rf"\b{user}\b", problem.message)
        and re.search(rf"\b{used}\b", problem.message)
    ]


# -- lint --------------------------------------------------------------------


@pytest.mark.exercise("use_def.lint._uses")
def test_nothing_is_wrong_with_residual() -> None:
    found = [problem.message for problem in problems(residual())]
    same(found, [], "Residual is a correct program: lint must find nothing.")


@pytest.mark.exercise("use_def.lint._uses")
def test_a_value_must_be_defined_before_it_is_used() -> None:
    graph = residual()
    find(graph, "linear").prepend(find(graph, "add"))
    check(
        said_of(graph, "add", "linear"),
        "add was moved before linear, so it uses linear before linear is "
        "computed. Yield a Problem at add whose message names add and linear.",
    )
    check(
        said_of(graph, "add", "linear' of Node 'add"),
        "The message must say that linear is the argument, and add its user.",
    )


@pytest.mark.exercise("use_def.lint._uses")
def test_every_fault_is_found_not_only_the_first() -> None:
    graph = residual()
    x = find(graph, "x")
    find(graph, "output").prepend(x)
    check(
        said_of(graph, "linear", "x") and said_of(graph, "add", "x"),
        "x was moved after linear and add, which both use it: two faults. The "
        "verifier must go on after the first, and each message must name both "
        "nodes.",
    )
    both = residual()
    add = find(both, "add")
    find(both, "x").prepend(add)
    check(
        said_of(both, "add", "linear") and said_of(both, "add", "x"),
        "add was moved before linear and x, and uses both: these are two "
        "faults, and each must be reported.",
    )


@pytest.mark.exercise("use_def.lint._uses")
def test_a_node_cannot_use_itself() -> None:
    graph = residual()
    add = find(graph, "add")
    add.args = (add, 1)
    check(
        said_of(graph, "add", "add"),
        "add uses its own value, which does not exist yet: a value must be "
        "defined strictly before its user.",
    )


@pytest.mark.exercise("use_def.lint._uses")
def test_an_argument_that_was_erased() -> None:
    graph = residual()
    graph.nodes.erase(find(graph, "add"))
    check(
        said_of(graph, "relu", "add"),
        "add was erased from the list without telling the graph, and relu "
        "still uses it: yield a Problem at relu that names both.",
    )


@pytest.mark.exercise("use_def.lint._uses")
def test_an_argument_of_another_graph() -> None:
    graph = residual()
    relu, stranger = find(graph, "relu"), find(residual(), "linear")
    relu._args, relu._inputs = (stranger,), (stranger,)
    stranger.users[relu] = None
    check(
        said_of(graph, "relu", "linear"),
        "relu uses linear, a node of another graph: yield a Problem at relu "
        "that names both.",
    )


@pytest.mark.exercise("use_def.lint._uses")
def test_the_order_key_of_a_foreign_node_does_not_matter() -> None:
    graph = residual()
    linear, stranger = find(graph, "linear"), find(residual(), "relu")
    linear._args, linear._inputs = (stranger,), (stranger,)
    stranger.users[linear] = None
    same(
        len(said_of(graph, "linear", "relu")),
        1,
        "linear uses the relu of another graph, which is one fault, to be "
        "reported once. Where that relu is in its own graph does not matter: "
        "do not compare its order key.",
    )


@pytest.mark.exercise("use_def.lint._uses")
def test_the_first_order_key_may_be_one() -> None:
    graph = residual()
    find(graph, "x")._sort_key = 1
    same(
        [problem.message for problem in problems(graph)],
        [],
        "The order key of x is 1, which is allowed: only the sentinel's is 0.",
    )


@pytest.mark.exercise("use_def.lint._uses")
def test_the_message_says_which_is_the_argument() -> None:
    graph = residual()
    graph.nodes.erase(find(graph, "add"))
    (said,) = said_of(graph, "relu", "add")
    check(
        "Argument 'add' of Node 'relu'" in said.message,
        "relu uses add, which was erased. The message must say that add is "
        "the argument and relu its user: `errors.not_in_graph(arg, node)`.",
        picture=said.message,
    )


@pytest.mark.exercise("use_def.lint._uses")
def test_the_sentinel_has_no_value() -> None:
    graph = residual()
    relu, root = find(graph, "relu"), graph._root
    relu._args, relu._inputs = (root,), (root,)
    root.users[relu] = None
    found = [p for p in problems(graph) if p.node is relu]
    check(
        found,
        "relu uses the sentinel of the list, which does not have a value. The "
        "sentinel's order key is 0, and that of each node is greater.",
    )


@pytest.mark.exercise("use_def.lint._uses")
def test_an_argument_that_is_in_no_list() -> None:
    graph = residual()
    x, relu = find(graph, "x"), find(graph, "relu")
    relu.args = (Node(graph, "loose", "call_function", torch.abs, (x,)),)
    check(
        said_of(graph, "relu", "loose"),
        "relu uses loose, a node of this graph that was made by hand and never "
        "put into the list. So loose is not computed before relu: yield a "
        "Problem at relu that names both.",
    )


@pytest.mark.exercise("use_def.lint._uses")
def test_a_value_must_know_its_user() -> None:
    graph = residual()
    del find(graph, "x").users[find(graph, "add")]
    check(
        said_of(graph, "add", "x"),
        "add uses x but is not in x.users: the edge is recorded at one end "
        "only. Yield a Problem at add that names both.",
    )
    late = residual()
    x = find(late, "x")
    del x.users[find(late, "linear")]
    find(late, "output").prepend(x)
    same(
        len(said_of(late, "linear", "x")),
        2,
        "x comes after linear, which uses it, and linear is not in x.users. "
        "These are two faults: check the users in any case.",
    )
    foreign = residual()
    linear, stranger = find(foreign, "linear"), find(residual(), "x")
    linear._args, linear._inputs = (stranger,), (stranger,)
    check(
        len(said_of(foreign, "linear", "x")) == 2,
        "linear uses a node of another graph, and is not among its users. "
        "These are two faults: check the users of a foreign node too.",
    )


@pytest.mark.exercise("use_def.lint._uses")
def test_values_inside_lists_and_keywords_must_know_their_user() -> None:
    graph = residual()
    linear, add, relu = (
        find(graph, name) for name in ("linear", "add", "relu")
    )
    relu.args, relu.kwargs = ([linear],), {"out": add}
    for used in (linear, add):
        del used.users[relu]
        check(
            said_of(graph, "relu", used.name),
            f"relu uses {used} inside a list or by keyword, and is not among "
            "its users. Look at all that a node uses, which is in `_inputs`, "
            "and not at the items of its args alone.",
        )


# -- last uses ---------------------------------------------------------------


def last(graph: Graph) -> dict[str, str]:
    """What `last_users` returns, by name."""
    found = last_users(graph.nodes)
    return {
        node.name: found[node].name for node in graph.nodes if node in found
    }


@pytest.mark.exercise("use_def.lint.last_users")
def test_the_last_users_of_residual() -> None:
    same(
        last(residual()),
        {"x": "add", "linear": "add", "add": "relu", "relu": "output"},
        "linear uses x and then add does, so add is the last. The output is a "
        "user like any other.",
    )


@pytest.mark.exercise("use_def.lint.last_users")
def test_the_last_user_is_the_last_in_the_program() -> None:
    graph = residual()
    x, linear = find(graph, "x"), find(graph, "linear")
    with graph.inserting_before(linear):
        neg = graph.call_function(torch.neg, (x,))
    find(graph, "relu").args = (find(graph, "add"), neg)
    same(
        last(graph)["x"],
        "add",
        "neg was made last, but put before linear. So it is the last of "
        "x.users, but not the last user of x to run. What counts is the order "
        "of the program.",
    )


@pytest.mark.exercise("use_def.lint.last_users")
def test_a_value_without_users() -> None:
    graph = residual()
    graph.placeholder("unused")
    found = last(graph)
    check(
        "unused" not in found and "output" not in found,
        "A value without users has no last user, so it must not have an entry.",
    )


@pytest.mark.exercise("use_def.lint.last_users")
def test_values_inside_lists() -> None:
    graph = Graph()
    a, b, c = (graph.placeholder(name) for name in "abc")
    one = graph.call_function(torch.cat, ([c, a, b],))
    two = graph.call_function(torch.cat, ([b, one, a],), {"out": c})
    graph.output((two, a))
    same(
        last(graph),
        {
            "a": "output",
            "b": "cat_1",
            "c": "cat_1",
            "cat": "cat_1",
            "cat_1": "output",
        },
        "A node uses what is inside a list or in its kwargs too: `_inputs` has "
        "all that it uses.",
    )
