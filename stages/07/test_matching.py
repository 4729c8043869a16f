"""Stage 07's checks of the matcher: pairing nodes, arguments, users outside."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest
import torch

from fx._symbolic_trace import symbolic_trace
from fx.graph import Graph
from fx.node import Node
from fx.passes.utils.matcher_utils import Search, SubgraphMatcher, is_convex
from stages.checking import check, same, working

Function: TypeAlias = Callable[..., object]

MATCH_NODE = "passes.utils.matcher_utils.Search.match_node"
CONVEX = "passes.utils.matcher_utils.is_convex"


def graph_of(function: Function) -> Graph:
    """The graph of a function."""
    return symbolic_trace(function).graph


def named(graph: Graph) -> dict[str, Node]:
    """The nodes of a graph by name."""
    return {node.name: node for node in graph.nodes}


# -- arguments ---------------------------------------------------------------


def search(
    pattern: Function,
    program: Function,
    *,
    ignore_literals: bool = False,
    normalize: bool = False,
    respect_mutations: bool = False,
    match_placeholder: bool = False,
    name: str = "",
) -> tuple[Search, dict[str, Node], dict[str, Node]]:
    """A search that has not begun, the pattern's nodes, and the graph's."""
    matcher = SubgraphMatcher(
        graph_of(pattern),
        match_placeholder=match_placeholder,
        ignore_literals=ignore_literals,
        normalize=normalize,
        respect_mutations=respect_mutations,
    )
    graph = graph_of(program)
    return (
        Search(matcher, graph, name),
        named(matcher.pattern),
        named(graph),
    )


def relu_of_sum(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """What most patterns here are."""
    return torch.relu(a + b)


# -- two nodes ---------------------------------------------------------------


@pytest.mark.exercise(MATCH_NODE)
def test_two_nodes_are_paired() -> None:
    one, pattern, graph = search(relu_of_sum, relu_of_sum)
    problem = one.match_node(pattern["relu"], graph["relu"])
    same(problem, "", "relu and relu are the same call: match_node answers ''.")
    check(
        one.nodes_map.get(pattern["relu"]) is graph["relu"],
        "match_node paired relu with relu and did not note it: bind does.",
    )
    same(
        [(str(a), str(b)) for a, b in one.stack],
        [("add", "add")],
        "The arguments of two paired nodes go on the stack: matching goes on "
        "with the operands.",
    )


@pytest.mark.exercise(MATCH_NODE)
def test_other_calls_are_not_paired() -> None:
    one, pattern, graph = search(relu_of_sum, lambda x, y: torch.relu(x - y))
    problem = one.match_node(pattern["add"], graph["sub"])
    check(
        problem,
        "The pattern adds and the graph subtracts: comparison.pair says "
        "None, and match_node must say why the nodes cannot be paired.",
    )
    same(one.nodes_map, {}, "Nodes that do not fit must not be paired.")


@pytest.mark.exercise(MATCH_NODE)
def test_a_user_that_takes_a_node_twice_is_one_user() -> None:
    def square_of_neg(a: torch.Tensor) -> torch.Tensor:
        inner = torch.neg(a)
        return inner * inner

    one, pattern, graph = search(square_of_neg, square_of_neg)
    same(
        one.match_node(pattern["neg"], graph["neg"]),
        "",
        "mul takes neg twice, in the pattern and in the graph. That is one "
        "user, and user_count is 1: compare it with `len(found.users)`, and "
        "not with the number of places where neg is an argument.",
    )


def sum_of_negs(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Two inner nodes of one kind."""
    return torch.neg(a) + torch.neg(b)


@pytest.mark.exercise(MATCH_NODE)
def test_a_node_of_the_pattern_has_one_partner() -> None:
    one, pattern, graph = search(sum_of_negs, sum_of_negs)
    one.match_node(pattern["neg"], graph["neg"])
    same(
        one.match_node(pattern["neg"], graph["neg"]),
        "",
        "neg was paired with neg and is met there again, by another way: "
        "that fits.",
    )
    check(
        one.match_node(pattern["neg"], graph["neg_1"]),
        "neg of the pattern was paired with neg and is now met at neg_1: it "
        "has its partner already.",
    )


@pytest.mark.exercise(MATCH_NODE)
def test_two_nodes_of_the_pattern_have_two_partners() -> None:
    def same_neg_twice(x: torch.Tensor) -> torch.Tensor:
        once = torch.neg(x)
        return once + once

    one, pattern, graph = search(sum_of_negs, same_neg_twice)
    one.match_node(pattern["neg"], graph["neg"])
    check(
        one.match_node(pattern["neg_1"], graph["neg"]),
        "neg and neg_1 of the pattern cannot both be the one neg of the "
        "graph: ask partners, which holds what has been paired.",
    )


@pytest.mark.exercise(MATCH_NODE)
def test_an_input_takes_no_node_that_is_paired() -> None:
    def same_neg_twice(x: torch.Tensor) -> torch.Tensor:
        once = torch.neg(x)
        return once + once

    one, pattern, graph = search(lambda a, b: torch.neg(a) + b, same_neg_twice)
    one.match_node(pattern["neg"], graph["neg"])
    check(
        one.match_node(pattern["b"], graph["neg"]),
        "neg is paired with neg of the pattern and will be erased, so that it "
        "cannot be the input b of the replacement as well: ask partners "
        "before you let a wildcard take a node.",
    )


@pytest.mark.exercise(MATCH_NODE)
def test_an_input_takes_any_node() -> None:
    one, pattern, graph = search(
        relu_of_sum, lambda x: torch.relu(torch.neg(x) + x)
    )
    problem = one.match_node(pattern["a"], graph["neg"])
    same(problem, "", "a is an input of the pattern: it takes any node.")
    same(
        one.stack,
        [],
        "Behind an input the pattern says nothing: no arguments of neg are "
        "to be compared.",
    )
    check(
        one.match_node(pattern["a"], graph["x"]),
        "Input a is neg already and is met again at x: it stands for one "
        "value.",
    )
    one.compare(pattern["b"], None)
    check(
        one.match_node(pattern["b"], graph["x"]),
        "Input b is the constant None already and is met again at x. Ask "
        "whether b is *in* nodes_map: what is there may be None.",
    )


def sum_is_read_twice(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """relu(x + y), whose sum another node uses as well."""
    total = x + y
    return torch.relu(total) * total


@pytest.mark.exercise(MATCH_NODE)
def test_an_inner_node_has_no_users_outside() -> None:
    one, pattern, graph = search(relu_of_sum, sum_is_read_twice)
    problem = one.match_node(pattern["add"], graph["add"])
    check(
        problem,
        "%add is used by %relu and by %mul, and only %relu is in the match: "
        "the sum would be erased although mul needs it. A node that the "
        "pattern does not return must not have users outside.",
    )
    same(one.nodes_map, {}, "A node that is refused must not stay paired.")


@pytest.mark.exercise(MATCH_NODE)
def test_a_returned_node_may_have_users() -> None:
    def both(a: torch.Tensor, b: torch.Tensor) -> list[torch.Tensor]:
        total = a + b
        return [total, torch.relu(total)]

    one, pattern, graph = search(both, sum_is_read_twice)
    problem = one.match_node(pattern["add"], graph["add"])
    same(
        problem,
        "",
        "The pattern returns its add: the replacement has a value for it, so "
        "others may use it (its user_count is -1).",
    )


@pytest.mark.exercise(MATCH_NODE)
def test_users_inside_of_the_match_are_welcome() -> None:
    one, pattern, graph = search(sum_is_read_twice, sum_is_read_twice)
    problem = one.match_node(pattern["add"], graph["add"])
    same(
        problem,
        "",
        "Two nodes use add in the pattern, and two in the graph: the "
        "user_count is 2, and both users may be in the match.",
    )


@pytest.mark.exercise(MATCH_NODE)
def test_a_name_is_enough_for_an_anchor() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.clamp(torch.tanh(torch.exp(x)), min=0.0)

    for sought, to, matches, why in (
        ("neg", "tanh", True, "the name contains `tanh`"),
        ("neg", "exp", False, "the name does not contain `tanh`"),
        ("relu", "tanh", False, "relu is not an anchor of the pattern"),
    ):
        one, pattern, graph = search(
            lambda a: torch.neg(torch.relu(a)), program, name="tanh"
        )
        problem = one.match_node(pattern[sought], graph[to])
        same(
            not problem,
            matches,
            f"node_name_match is 'tanh', the pattern's {sought} is compared "
            f"with {to}, and {why}. Only an anchor may be paired for its name "
            "(`named`).",
        )
        same(
            [(str(a), str(b)) for a, b in one.stack],
            [("relu", "exp")] if matches else [],
            "The arguments of two nodes that are paired for a name are "
            "compared like others: `side_by_side` gives them.",
        )


@pytest.mark.exercise(MATCH_NODE)
@pytest.mark.parametrize("by_keyword", [True, False])
def test_a_name_does_not_make_up_for_other_arguments(by_keyword: bool) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.clamp(x, min=0.0) if by_keyword else torch.clamp(x, 0.0)

    one, pattern, graph = search(lambda a: torch.relu(a), program, name="clamp")
    sentence = (
        "The name matches, but clamp(x, 0.0) has an argument that relu(a) "
        "does not have: `side_by_side` gives None if it is a keyword, else "
        "two sequences of different lengths, and then nothing is paired."
    )
    try:
        problem = one.match_node(pattern["relu"], graph["clamp"])
    except (TypeError, ValueError) as error:
        check(False, sentence, picture=f"yours: {error!r}")
    else:
        check(problem, sentence)


@pytest.mark.exercise(MATCH_NODE)
def test_a_name_is_asked_for_last() -> None:
    one, pattern, graph = search(
        lambda a: torch.clamp(a, 0.0),
        lambda x: torch.clamp(x, min=0.0),
        normalize=True,
        name="clamp",
    )
    same(
        one.match_node(pattern["clamp"], graph["clamp"]),
        "",
        "clamp(a, 0.0) and clamp(x, min=0.0) are the same call, which "
        "comparison.pair knows. Its answer counts; only if it is None may a "
        "name make up for it.",
    )


@pytest.mark.exercise(MATCH_NODE)
def test_a_name_does_not_exchange_operands() -> None:
    one, pattern, graph = search(
        lambda a, b: torch.relu(a) + b,
        lambda x, y: torch.mul(y, torch.relu(x)),
        normalize=True,
        name="mul",
    )
    check(
        not one.match_from(pattern["add"], graph["mul"]),
        "The pattern is relu(a) + b, and mul(y, relu(x)) is met for its name. "
        "Both may have their operands exchanged, but they are two operations: "
        "what is paired for its name alone is compared in its own order.",
    )


@pytest.mark.exercise(MATCH_NODE)
def test_a_sum_of_tuples_is_not_exchanged() -> None:
    one, pattern, graph = search(
        lambda a, b: a + a * b, lambda x, y: x.shape + y.shape, normalize=True
    )
    same(
        one.match_node(pattern["add"], graph["add"]),
        "",
        "Both are written a + b, so they may match as they are.",
    )
    same(
        one.choices,
        [],
        "The pattern's sum is one of tensors, as far as it knows, and in the "
        "graph two tuples are joined: their order counts. `self.commutes` "
        "asks both.",
    )


@pytest.mark.exercise(MATCH_NODE)
def test_the_first_arguments_are_compared_first() -> None:
    one, pattern, graph = search(
        lambda a, b: torch.sub(a, b), lambda x, y: torch.sub(x, y)
    )
    one.match_node(pattern["sub"], graph["sub"])
    same(
        [(str(a), str(b)) for a, b in one.stack],
        [("b", "y"), ("a", "x")],
        "The last pair of the stack is compared next, so the pairs of "
        "arguments go on it in reversed order.",
    )


@pytest.mark.exercise(MATCH_NODE)
def test_operands_of_a_difference_have_their_order() -> None:
    one, pattern, graph = search(
        lambda a, b: torch.relu(a) - b,
        lambda x, y: torch.sub(y, torch.relu(x)),
        normalize=True,
    )
    check(
        not one.match_from(pattern["sub"], graph["sub"]),
        "Pattern relu(a) - b, graph sub(y, relu(x)): a difference with "
        "exchanged operands is another one. Only where self.commutes says so "
        "may the operands be exchanged.",
    )


@pytest.mark.exercise(MATCH_NODE)
def test_operands_may_be_exchanged() -> None:
    one, pattern, graph = search(
        lambda a, b: torch.relu(a) + b,
        lambda x, y: torch.add(y, torch.relu(x)),
        normalize=True,
    )
    check(
        one.match_from(pattern["add"], graph["add"]),
        "Pattern relu(a) + b, graph add(y, relu(x)): a sum may have its "
        "operands exchanged. Where self.commutes says so, match_node leaves a "
        "choice: the stack with the operands exchanged.",
    )
    same(
        {str(a): str(b) for a, b in one.nodes_map.items()},
        {"add": "add", "a": "x", "relu": "relu", "b": "y"},
        "The operands of add were exchanged, and add itself stays paired: a "
        "choice notes how many pairs are kept, so bind the node before you "
        "count them.",
    )


@pytest.mark.exercise(MATCH_NODE)
def test_operands_beside_a_third_have_their_order() -> None:
    one, pattern, graph = search(
        lambda a, b: torch.add(torch.relu(a), b, alpha=1),
        lambda x, y: torch.add(y, torch.relu(x), alpha=2),
        normalize=True,
        ignore_literals=True,
    )
    sentence = (
        "Pattern add(relu(a), b, alpha=1), graph add(y, relu(x), alpha=2), "
        "and constants are ignored: alpha multiplies the second operand, so "
        "where there is a third argument, the operands keep their order."
    )
    try:
        found = one.match_from(pattern["add"], graph["add"])
    except (TypeError, ValueError) as error:
        check(False, sentence, picture=f"yours: {error!r}")
    else:
        check(not found, sentence)


@pytest.mark.exercise(MATCH_NODE)
def test_a_choice_keeps_what_was_still_to_be_compared() -> None:
    one, pattern, graph = search(
        lambda a, b, c: (torch.relu(a) + b) - torch.neg(c),
        lambda x, y, z: torch.add(y, torch.relu(x)) - torch.exp(z),
        normalize=True,
    )
    check(
        not one.match_from(pattern["sub"], graph["sub"]),
        "Pattern (relu(a) + b) - neg(c), graph (y + relu(x)) - exp(z): neg and "
        "exp still wait on the stack while the operands of the sum are "
        "exchanged. A choice is the whole stack, or they are never compared.",
    )


# -- convex sets --------------------------------------------------------------


@pytest.mark.exercise(CONVEX)
def test_neighbours_do_not_leave() -> None:
    nodes = named(graph_of(relu_of_sum))
    same(
        is_convex({nodes["add"], nodes["relu"]}),
        True,
        "add and relu are both in the set: the path from one to the other "
        "does not leave it, so the set is convex.",
    )


@pytest.mark.exercise(CONVEX)
def test_a_step_outside_and_back() -> None:
    nodes = named(graph_of(lambda x: torch.relu(torch.neg(x)) + torch.neg(x)))
    same(
        is_convex({nodes["neg"], nodes["add"]}),
        False,
        "relu, which is outside, uses neg, and add, which is in the set again, "
        "uses relu.",
    )
    same(
        is_convex({nodes["neg"], nodes["relu"], nodes["add"]}),
        True,
        "With relu in the set no path leaves it and comes back.",
    )


@pytest.mark.exercise(CONVEX)
def test_a_long_way_out_and_back() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        start = torch.neg(x)
        return torch.tanh(torch.exp(torch.sin(start))) + 1

    nodes = named(graph_of(program))
    same(
        is_convex({nodes["neg"], nodes["add"]}),
        False,
        "neg, sin, exp, tanh, add: the path out of {neg, add} is three nodes "
        "long before it comes back. Looking one user far is not enough.",
    )


@pytest.mark.exercise(CONVEX)
def test_the_way_may_be_longer_than_a_recursion() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        value = start = torch.neg(x)
        for _ in range(2 * sys.getrecursionlimit()):
            value = torch.sin(value)
        return value + start

    nodes = named(graph_of(program))
    with working(
        "Between neg and add are thousands of sin, each of which uses the one "
        "before. A function that calls itself for the users goes too deep for "
        "Python: keep what is still to be looked at in a list."
    ):
        convex = is_convex({nodes["neg"], nodes["add"]})
    same(convex, False, "The way of thousands of sin leads back to add.")


@pytest.mark.exercise(CONVEX)
@pytest.mark.parametrize("leak", range(4))
def test_any_node_of_the_set_may_be_the_one(leak: int) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        parts = [torch.neg(x) for _ in range(4)]
        return torch.stack([*parts, torch.exp(parts[leak])])

    for _ in range(5):  # a set has its nodes in no certain order
        nodes = named(graph_of(program))
        inside = {node for node in nodes.values() if node.target is torch.neg}
        same(
            is_convex({*inside, nodes["stack"]}),
            False,
            f"Of the four negs only number {leak} has a user outside of the "
            "set, and what that computes comes back to stack: look at the "
            "users of each node, not of the first one.",
        )


class _Counting(dict[Node, None]):
    """The users of a node; counts how often they are walked over."""

    walks = 0

    def __iter__(self) -> Iterator[Node]:
        self.walks += 1
        return super().__iter__()


@pytest.mark.exercise(CONVEX)
def test_no_node_is_walked_over_twice() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        x = torch.neg(x)
        for _ in range(8):
            x = torch.sin(x) + torch.cos(x)
        return [x, torch.relu(y)]

    nodes = named(graph_of(program))
    users = _Counting(nodes["add_7"].users)
    nodes["add_7"].users = users
    same(
        is_convex({nodes["neg"], nodes["relu"]}),
        True,
        "No path leads from neg to relu.",
    )
    check(
        users.walks <= 1,
        f"256 paths lead from neg to add_7, and its users were walked over "
        f"{users.walks} times: keep what you have seen, and do not visit it "
        "again.",
    )


@pytest.mark.exercise(CONVEX)
def test_nothing_is_walked_over_behind_the_last() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(torch.cos(torch.tan(torch.neg(x))))

    nodes = named(graph_of(program))
    users = _Counting(nodes["tan"].users)
    nodes["tan"].users = users
    is_convex({nodes["x"], nodes["neg"]})
    same(
        users.walks,
        0,
        "tan comes after neg, the last node of the set, and so do all its "
        "users: no path from there comes back, so do not follow it.",
    )


@pytest.mark.exercise(CONVEX)
def test_a_way_out_may_stay_out() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        return [torch.sin(torch.neg(x)), torch.relu(y)]

    nodes = named(graph_of(program))
    same(
        is_convex({nodes["neg"], nodes["relu"]}),
        True,
        "sin, outside, uses neg, and from there no path leads to relu: "
        "leaving a set does no harm as long as nothing comes back.",
    )


# -- what cannot be taken out ------------------------------------------------


@pytest.mark.exercise(CONVEX)
def test_a_match_of_inputs_alone_is_convex() -> None:
    sentence = (
        "A pattern that returns two inputs has no operation, so that the set "
        "is empty: no path leaves it, and the answer is True."
    )
    try:
        answer = is_convex(set())
    except ValueError as error:
        check(False, sentence, picture=f"yours: ValueError: {error}")
    else:
        same(answer, True, sentence)


MATCH_FROM = "passes.utils.matcher_utils.Search.match_from"


@pytest.mark.exercise(MATCH_FROM)
def test_everything_below_an_anchor_is_paired() -> None:
    one, pattern, graph = search(
        lambda a, b: torch.relu(torch.add(a, b)),
        lambda x, y: torch.relu(torch.add(y, x)),
    )
    check(
        one.match_from(pattern["relu"], graph["relu"]),
        "The pattern is the program, with other names: it matches.",
    )
    same(
        {str(a): str(b) for a, b in one.nodes_map.items()},
        {"relu": "relu", "add": "add", "a": "y", "b": "x"},
        "A node is paired, then what it depends on, down to the inputs: go on "
        "until the stack is empty.",
    )


@pytest.mark.exercise(MATCH_FROM)
def test_one_difference_is_enough() -> None:
    one, pattern, graph = search(
        lambda a: torch.add(torch.neg(a), 2),
        lambda x: torch.add(torch.neg(x), 3),
    )
    one.keep = True
    check(
        not one.match_from(pattern["add"], graph["add"]),
        "The pattern adds 2 and the program 3: what `compare` answers must "
        "end the search, as what `match_node` answers does.",
    )
    same(
        [(bool(m.reason), m.pattern, m.found) for m in one.mismatches],
        [(True, 2, 3)],
        "Why a try failed is kept by `note`, which gets the reason, then the "
        "pattern's side and the graph's, once.",
    )


@pytest.mark.exercise(MATCH_FROM)
def test_each_way_that_fails_is_noted() -> None:
    one, pattern, graph = search(
        lambda a, b: torch.relu(a) + torch.neg(b),
        lambda x, y: torch.sin(x) + torch.cos(y),
        normalize=True,
    )
    one.keep = True
    one.match_from(pattern["add"], graph["add"])
    same(
        len(one.mismatches),
        2,
        "The operands of a sum are tried in both orders, and neither matches: "
        "`note` keeps why for each, also where there is a choice left.",
    )


def sums_are_read_once(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Like `sum_is_read_twice`, but the sum is computed twice."""
    return torch.relu(x + y) * (x + y)


def reason_of(pattern: Function, program: Function) -> str:
    """Why the first try to match failed."""
    found = SubgraphMatcher(graph_of(pattern)).mismatches(graph_of(program))
    return found[0].reason if found else "(nothing)"


TOLD = (
    "`explain` shows people why a pattern was not found, and this reason has "
    "another wording than the docstring says."
)


@pytest.mark.exercise(MATCH_NODE)
def test_the_reasons_for_nodes() -> None:
    same(
        reason_of(lambda a: a + a, lambda x, y: x + y),
        "a is x already",
        TOLD,
    )
    same(
        reason_of(lambda a, b: a + b, lambda x: x + x),
        "x is paired with another node of the pattern",
        TOLD,
    )
    same(
        reason_of(relu_of_sum, sum_is_read_twice),
        "add has users outside of the match",
        TOLD,
    )
    same(
        reason_of(lambda a: torch.sum(a, 1), lambda x: torch.sum(x)),
        "other arguments, or other constants",
        f"{TOLD} (It is the answer of `_difference`.)",
    )


@pytest.mark.exercise(MATCH_NODE)
def test_a_node_may_have_fewer_users_than_the_pattern() -> None:
    same(
        reason_of(sum_is_read_twice, sums_are_read_once),
        "add is add already",
        "The pattern uses one sum twice, the program two sums once each. A "
        "node must have no *more* users than the pattern's, and may have "
        "fewer: none of them is outside of the match. What differs is that "
        "the pattern's sum has a partner already.",
    )


@pytest.mark.exercise(MATCH_NODE)
def test_the_call_is_compared_before_the_users() -> None:
    def product_is_read_twice(x: torch.Tensor) -> torch.Tensor:
        product = x * x
        return torch.relu(product) + product

    reason = reason_of(relu_of_sum, product_is_read_twice)
    check(
        "users" not in reason,
        "The pattern adds, and the program multiplies and uses the product "
        "twice. It is another call, whoever uses it: that is the reason to "
        "name.",
        picture=f"yours: {reason}",
    )


@pytest.mark.exercise(MATCH_FROM)
def test_a_second_search_begins_anew() -> None:
    one, pattern, graph = search(
        lambda a, b: torch.relu(a) + b,
        lambda x, y: (torch.relu(x) + torch.relu(y), torch.neg(y)),
        normalize=True,
    )
    check(one.match_from(pattern["add"], graph["add"]), "The sums match.")
    check(
        bool(one.choices),
        "The operands were never exchanged, so that choice is still there.",
    )
    one.backtrack(0)
    check(
        not one.match_from(pattern["add"], graph["neg"]),
        "neg is not a sum. A choice that an earlier search left must not be "
        "tried: begin with no choices and with one pair on the stack.",
    )
    one.stack.append((1, 2))
    check(
        one.match_from(pattern["add"], graph["add"]),
        "The sums match. A search that failed had left a pair on the stack, "
        "which is not part of this one: begin with one pair on the stack.",
    )


@pytest.mark.exercise(MATCH_FROM)
def test_a_pattern_may_be_deeper_than_a_recursion() -> None:
    def chain(x: torch.Tensor) -> torch.Tensor:
        value = torch.neg(x)
        for _ in range(2 * sys.getrecursionlimit()):
            value = torch.neg(value)
        return value

    one, pattern, graph = search(chain, chain)
    last = list(graph)[-2]
    with working(
        "The pattern is a chain of thousands of neg. A function that calls "
        "itself for the next pair goes too deep for Python: take the pairs "
        "from the stack in a loop."
    ):
        found = one.match_from(pattern[last], graph[last])
    check(found, "The pattern and the program are the same chain of neg.")


@pytest.mark.exercise(MATCH_FROM)
def test_the_pairs_of_a_failed_order_are_undone() -> None:
    one, pattern, graph = search(
        lambda a, b: torch.neg(torch.relu(a)) + b,
        lambda x, y: torch.neg(torch.exp(x)) + torch.neg(torch.relu(y)),
        normalize=True,
    )
    check(
        one.match_from(pattern["add"], graph["add"]),
        "A sum with exchanged operands matches: when a pair fails, go on at "
        "the last choice, without what was paired since.",
    )
    same(
        {str(a): str(b) for a, b in one.nodes_map.items()},
        {
            "add": "add",
            "neg": "neg_1",
            "relu": "relu",
            "a": "y",
            "b": "neg",
        },
        "What was paired in the order that failed has to be undone: a choice "
        "has the number of pairs that stay, for `backtrack`.",
    )
    same(
        len(one.partners),
        5,
        "Each partner belongs to one pair: `backtrack` forgets both.",
    )


@pytest.mark.exercise(MATCH_FROM)
def test_a_node_and_a_constant_are_arguments_to_compare() -> None:
    one, pattern, graph = search(
        lambda a: torch.add(a, 2), lambda x, y: torch.add(x, y)
    )
    with working(
        "The pattern has the constant 2 where the program has a node: that is "
        "for `compare`, because only one side is a node."
    ):
        answer = one.match_from(pattern["add"], graph["add"])
    check(not answer, "y is not the constant 2.")
    one, pattern, graph = search(
        lambda a, b: torch.add(torch.relu(a), b), lambda x: torch.add(2, x)
    )
    with working(
        "The pattern has a node where the program has the constant 2: that is "
        "for `compare`, because only one side is a node."
    ):
        answer = one.match_from(pattern["add"], graph["add"])
    check(not answer, "2 is not what relu returns.")


@pytest.mark.exercise(MATCH_FROM)
def test_the_last_choice_is_the_first_to_be_undone() -> None:
    one, pattern, graph = search(
        lambda a, b, c: (torch.relu(a) + b) + torch.neg(c),
        lambda x, y, z: (y + torch.relu(x)) + torch.neg(z),
        normalize=True,
    )
    check(
        one.match_from(pattern["add_1"], graph["add_1"]),
        "Of two sums, one in the other, the inner one has its operands "
        "exchanged: that matches.",
    )
    same(
        {str(a): str(b) for a, b in one.nodes_map.items()}.get("add"),
        "add",
        "The choice at the inner sum was made last, and has to be tried first: "
        "a choice knows what was paired before it, and an earlier one undoes "
        "all later ones.",
    )
