"""Stage 07's checks of the matcher: pairing nodes, arguments, users outside."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import pytest
import torch

from fx._symbolic_trace import symbolic_trace
from fx.graph import Graph
from fx.node import Node
from fx.passes.utils.matcher_utils import (
    InternalMatch,
    Search,
    SubgraphMatcher,
    is_convex,
)
from fx.rewriting.patterns import Exact
from fx.use_def.values import Argument
from stages.checking import check, same, working

Function: TypeAlias = Callable[..., object]

PAIR = "rewriting.patterns.Exact.pair"
COMPARE = "passes.utils.matcher_utils.Search.compare"
MATCH_NODE = "passes.utils.matcher_utils.Search.match_node"
CONVEX = "passes.utils.matcher_utils.is_convex"
OBSTACLE = "passes.utils.matcher_utils.Search.obstacle"

aten_add = torch.ops.aten.add.Tensor


def graph_of(function: Function) -> Graph:
    """The graph of a function."""
    return symbolic_trace(function).graph


def named(graph: Graph) -> dict[str, Node]:
    """The nodes of a graph by name."""
    return {node.name: node for node in graph.nodes}


# -- two calls ---------------------------------------------------------------


def paired(pattern: Function, program: Function) -> list[list[str]] | None:
    """What Exact makes of the calls that two functions end with, as text."""
    ends = [graph_of(f).output_node().input_at(0) for f in (pattern, program)]
    found = Exact().pair(*ends)
    if found is None:
        return None
    return [[str(arg) for arg in side] for side in found]


@pytest.mark.exercise(PAIR)
def test_the_same_call_gives_both_arguments() -> None:
    found = paired(lambda a, b: torch.sub(a, b), lambda x, y: torch.sub(y, x))
    same(
        found,
        [["a", "b"], ["y", "x"]],
        "pattern sub(a, b), graph sub(y, x): pair gives the arguments of both, "
        "the pattern's first, each in their order.",
    )


@pytest.mark.exercise(PAIR)
def test_another_target_is_another_call() -> None:
    found = paired(lambda a: torch.relu(a), lambda x: torch.neg(x))
    same(
        found,
        None,
        "Pattern relu(a), graph neg(x): the targets are different, so it is "
        "another operation and pair answers None.",
    )


@pytest.mark.exercise(PAIR)
def test_equal_targets_may_be_two_objects() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    one = graph.call_method("relu", (x,))
    other = graph.call_method("".join(["re", "lu"]), (x,))
    check(
        Exact().pair(one, other) is not None,
        "Two call_method nodes have the target 'relu', and their strings are "
        "two objects: targets are compared by `==` and not by `is`.",
    )


@pytest.mark.exercise(PAIR)
def test_another_opcode_is_another_call() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    method = graph.call_method("relu", (x,))
    module = graph.call_module("relu", (x,))
    found = Exact().pair(method, module)
    same(
        found,
        None,
        "call_method 'relu' and call_module 'relu' have equal targets and are "
        "not the same: the opcode must agree, too.",
    )


@pytest.mark.exercise(PAIR)
def test_names_of_inputs_do_not_matter() -> None:
    one, other = Graph(), Graph()
    found = Exact().pair(one.placeholder("a"), other.placeholder("x"))
    check(
        found is not None,
        "placeholder a and placeholder x have different targets, and those "
        "are only names: for the opcodes of BY_OPCODE the target does not "
        "count.",
    )


@pytest.mark.exercise(PAIR)
def test_keyword_arguments_are_compared_too() -> None:
    found = paired(
        lambda a: torch.clamp(a, min=0.0), lambda x: torch.clamp(x, min=1.0)
    )
    same(
        found,
        [["a", "0.0"], ["x", "1.0"]],
        "clamp(a, min=0.0) and clamp(x, min=1.0): the values given by keyword "
        "follow the positional ones in the pair, else they are not compared.",
    )


@pytest.mark.exercise(PAIR)
def test_other_keywords_are_another_call() -> None:
    found = paired(
        lambda a: torch.clamp(a, min=0.0), lambda x: torch.clamp(x, max=0.0)
    )
    same(
        found,
        None,
        "clamp(a, min=0.0) is not clamp(x, max=0.0): keywords must have the "
        "same names before their values may be paired.",
    )


@pytest.mark.exercise(PAIR)
def test_another_number_of_arguments_is_another_call() -> None:
    found = paired(lambda a: torch.sum(a), lambda x: torch.sum(x, 1))
    same(
        found,
        None,
        "sum(a) is not sum(x, 1): arguments that only one call has must not "
        "fall off the end.",
    )


@pytest.mark.exercise(PAIR)
def test_a_schema_fills_in_defaults() -> None:
    found = paired(
        lambda a, b: aten_add(a, b), lambda x, y: aten_add(x, y, alpha=1)
    )
    same(
        found,
        [["a", "b", "1"], ["x", "y", "1"]],
        "aten.add.Tensor(a, b) and aten.add.Tensor(x, y, alpha=1) are one "
        "call: an OpOverload has a schema, and by_schema fills in defaults.",
    )


@pytest.mark.exercise(PAIR)
def test_a_default_may_be_given_by_position() -> None:
    aten_sum = torch.ops.aten.sum.dim_IntList
    found = paired(
        lambda a: aten_sum(a, [1]), lambda x: aten_sum(x, [1], False)
    )
    same(
        found and [side[2] for side in found],
        ["False", "False"],
        "aten.sum.dim_IntList(a, [1]) and aten.sum.dim_IntList(x, [1], False) "
        "are one call: two lists of different lengths leave room for what the "
        "schema fills in.",
    )


@pytest.mark.exercise(PAIR)
def test_keywords_in_another_order_are_not_exchanged() -> None:
    found = paired(
        lambda a, b: torch.sub(input=a, other=b),
        lambda x, y: torch.sub(other=y, input=x),
    )
    check(
        found is None or sorted(zip(*found, strict=True)) == PAIRED_BY_NAME,
        "The pattern says sub(input=a, other=b) and the graph sub(other=y, "
        "input=x). Paired by their order, a would be y, and x - y would be "
        "replaced as if it were y - x: answer None, or pair them by name.",
    )


PAIRED_BY_NAME = [("a", "x"), ("b", "y")]


class _Keeper(torch.nn.Module):
    """Returns a tensor that it has, under another name than `_Holder`."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = torch.ones(2)

    def forward(self) -> torch.Tensor:
        return self.kept


class _Holder(torch.nn.Module):
    """Returns a tensor that it has."""

    def __init__(self, held: torch.Tensor) -> None:
        super().__init__()
        self.held = held

    def forward(self) -> torch.Tensor:
        return self.held


@pytest.mark.exercise(PAIR)
def test_fetched_tensors_must_be_of_one_class() -> None:
    plain = symbolic_trace(_Holder(torch.ones(2)))
    other = symbolic_trace(_Holder(torch.zeros(3)))
    trained = symbolic_trace(_Holder(torch.nn.Parameter(torch.ones(2))))
    nodes = [
        gm.graph.output_node().input_at(0) for gm in (plain, other, trained)
    ]
    check(
        Exact().pair(nodes[0], nodes[1]) is not None,
        "Two get_attr nodes that fetch plain tensors are the same to Exact, "
        "whatever is in the tensors (same_value says so).",
    )
    kept = symbolic_trace(_Keeper()).graph.output_node().input_at(0)
    check(
        Exact().pair(nodes[0], kept) is not None,
        "Two get_attr nodes fetch `held` and `kept`. A path is only a name, "
        "which the author of the pattern chose: what is fetched counts, and "
        "same_value says that it is the same.",
    )
    same(
        Exact().pair(nodes[0], nodes[2]),
        None,
        "One get_attr node fetches a Tensor, the other a Parameter: "
        "same_value says no, and pair must ask it.",
    )


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


@pytest.mark.exercise(COMPARE)
@pytest.mark.parametrize(
    ("sought", "found"), [(2, 2), ("mean", "mean"), (None, None)]
)
def test_equal_constants_fit(sought: Argument, found: Argument) -> None:
    one, _, _ = search(relu_of_sum, relu_of_sum)
    same(
        one.compare(sought, found),
        "",
        f"The pattern says {sought!r} and the graph has it: compare answers "
        "with the empty text, there is nothing to complain of.",
    )


@pytest.mark.exercise(COMPARE)
@pytest.mark.parametrize(
    ("sought", "found"), [(1, 2), (1, True), (1, 1.0), (None, 0)]
)
def test_other_constants_do_not_fit(sought: Argument, found: Argument) -> None:
    one, _, _ = search(relu_of_sum, relu_of_sum)
    check(
        one.compare(sought, found),
        f"The pattern says {sought!r} and the graph {found!r}: constants fit "
        "if they are equal and of one type, and `==` alone takes 1 for True.",
    )


@pytest.mark.exercise(COMPARE)
@pytest.mark.parametrize(
    ("sought", "found"),
    [
        (slice(True, None), slice(1, None)),
        ({"dim": True}, {"dim": 1}),
        ({"dim": (1, 2)}, {"dim": (1.0, 2)}),
    ],
    ids=str,
)
def test_constants_inside_others_have_types_too(
    sought: Argument, found: Argument
) -> None:
    one, _, _ = search(relu_of_sum, relu_of_sum)
    check(
        one.compare(sought, found),
        f"The pattern says {sought!r}, and the graph {found!r}. Both are of "
        "one type, and `==` calls them equal, but a value inside is of another "
        "type: `equal_constants` looks there, too.",
    )


@pytest.mark.exercise(COMPARE)
def test_an_input_takes_a_constant() -> None:
    one, pattern, _ = search(relu_of_sum, relu_of_sum)
    same(
        one.compare(pattern["b"], 3),
        "",
        "b is an input of the pattern: it takes anything, the constant 3 too.",
    )
    same(
        one.nodes_map.get(pattern["b"]),
        3,
        "compare said that input b may be 3 and did not write it down: the "
        "replacement will ask nodes_map what b is.",
    )


@pytest.mark.exercise(COMPARE)
def test_an_input_that_takes_placeholders_takes_a_constant_too() -> None:
    one, pattern, _ = search(relu_of_sum, relu_of_sum, match_placeholder=True)
    same(
        one.compare(pattern["b"], 3),
        "",
        "With match_placeholder an input is no wildcard for nodes, but it "
        "takes a constant all the same: ask for its opcode.",
    )


@pytest.mark.exercise(COMPARE)
def test_an_input_may_be_none() -> None:
    one, pattern, _ = search(relu_of_sum, relu_of_sum)
    one.compare(pattern["b"], None)
    check(
        one.compare(pattern["b"], 3),
        "Input b was None and is met again as 3: None is a constant like any "
        "other. Ask whether b is *in* nodes_map.",
    )


@pytest.mark.exercise(COMPARE)
def test_an_input_is_one_thing_only() -> None:
    one, pattern, _ = search(relu_of_sum, relu_of_sum)
    one.compare(pattern["b"], 3)
    same(
        one.compare(pattern["b"], 3),
        "",
        "Input b was 3 and is met again as 3: that fits.",
    )
    check(
        one.compare(pattern["b"], 4),
        "Input b was 3 and is met again as 4: an input stands for one value "
        "throughout a match, so this must not fit.",
    )


@pytest.mark.exercise(COMPARE)
def test_an_input_keeps_its_first_value() -> None:
    one, pattern, _ = search(relu_of_sum, relu_of_sum)
    one.compare(pattern["b"], 3)
    one.compare(pattern["b"], 4)
    same(
        one.nodes_map.get(pattern["b"]),
        3,
        "Input b was 3 and was met again as 4, which does not fit. The search "
        "may go on at an earlier choice, where b is still 3: leave the value "
        "that an input has.",
    )


@pytest.mark.exercise(COMPARE)
def test_the_reason_tells_a_text_from_a_node() -> None:
    one, pattern, _ = search(relu_of_sum, relu_of_sum)
    same(
        [one.compare(pattern["add"], "x"), one.compare("x", "y")],
        ["add is not 'x'", "'y' instead of 'x'"],
        "The graph has the text 'x' where the pattern has something else. "
        "Write values by `repr`, because x without its quotes is a node.",
    )


@pytest.mark.exercise(COMPARE)
def test_dicts_are_constants() -> None:
    one, pattern, graph = search(relu_of_sum, lambda x, y: torch.relu(x + y))
    check(
        one.compare({"k": pattern["a"]}, {"k": graph["x"]}),
        "Both have a dict with a node in it. Only lists and tuples are "
        "compared item by item; two dicts fit if they are equal, and these "
        "have different nodes.",
    )


@pytest.mark.exercise(COMPARE)
@pytest.mark.parametrize(
    ("first", "again"),
    [(0.5, float("0.5")), ("sum", "".join("sum")), ([1, 2], [1, 2])],
)
def test_an_input_may_be_met_as_an_equal_thing(
    first: Argument, again: Argument
) -> None:
    one, pattern, _ = search(relu_of_sum, relu_of_sum)
    one.compare(pattern["b"], first)
    same(
        one.compare(pattern["b"], again),
        "",
        f"Input b was {first!r} and is met again as an equal object, which is "
        "another one: for constants it is equality that counts "
        "(`equal_constants`).",
    )


@pytest.mark.exercise(COMPARE)
def test_an_input_may_be_met_as_the_same_thing() -> None:
    one, pattern, _ = search(relu_of_sum, relu_of_sum)
    nan = torch.tensor(float("nan"))
    one.compare(pattern["b"], nan)
    same(
        one.compare(pattern["b"], nan),
        "",
        "Input b was a tensor with nan in it and is met again as the same "
        "object. nan is not equal to itself, but the same thing fits whatever "
        "`==` says.",
    )


@pytest.mark.exercise(COMPARE)
@pytest.mark.parametrize("again", [True, 1.0])
def test_an_input_is_of_one_type(again: Argument) -> None:
    one, pattern, _ = search(relu_of_sum, relu_of_sum)
    one.compare(pattern["b"], 1)
    check(
        one.compare(pattern["b"], again),
        f"Input b was 1 and is met again as {again!r}. `==` says they are "
        "equal, but they are of two types: `equal_constants` asks for both.",
    )


@pytest.mark.exercise(COMPARE)
def test_an_operation_is_no_constant() -> None:
    one, pattern, graph = search(relu_of_sum, relu_of_sum)
    check(
        one.compare(pattern["add"], 3),
        "The pattern wants the result of an addition and the graph has the "
        "constant 3: only an input of the pattern takes constants.",
    )
    check(
        one.compare(3, graph["add"]),
        "The pattern wants the constant 3 and the graph has the result of an "
        "addition: that does not fit.",
    )


@pytest.mark.exercise(COMPARE)
def test_the_items_of_lists_are_compared_next() -> None:
    one, pattern, graph = search(relu_of_sum, lambda x, y: torch.relu(x + y))
    problem = one.compare([pattern["a"], 2], (graph["x"], 5))
    same(
        problem,
        "",
        "A list and a tuple of one length may fit, as torch takes one for the "
        "other: their items decide.",
    )
    same(
        sorted(str(pair) for pair in one.stack),
        ["(2, 5)", "(a, x)"],
        "The items of two lists go on the stack pairwise; nothing else "
        "compares them.",
    )
    same(
        [str(pair) for pair in one.stack],
        ["(2, 5)", "(a, x)"],
        "The first items are compared first, and the last pair of the stack is "
        "compared next: put them on it in reversed order.",
    )


@pytest.mark.exercise(COMPARE)
def test_a_named_tuple_is_a_tuple() -> None:
    class Pair(NamedTuple):
        first: Argument
        second: Argument

    one, pattern, graph = search(relu_of_sum, lambda x, y: torch.relu(x + y))
    same(
        one.compare((pattern["a"], 2), Pair(graph["x"], 2)),
        "",
        "The graph has a named tuple, which is a tuple as well as a "
        "torch.Size is one: ask `isinstance`, and let the items decide.",
    )


@pytest.mark.exercise(COMPARE)
def test_lists_of_other_lengths_do_not_fit() -> None:
    one, _, _ = search(relu_of_sum, relu_of_sum)
    check(
        one.compare([1, 2], [1, 2, 3]),
        "[1, 2] in the pattern, [1, 2, 3] in the graph: zip stops at the "
        "shorter list, so the lengths have to be compared first.",
    )


@pytest.mark.exercise(COMPARE)
@pytest.mark.parametrize(("sought", "found"), [(2, [2]), ([2], 2)])
def test_a_list_is_no_constant(sought: Argument, found: Argument) -> None:
    one, _, _ = search(relu_of_sum, relu_of_sum)
    sentence = (
        f"The pattern says {sought!r} and the graph {found!r}: items are "
        "compared if both are lists or tuples, and otherwise it must be an "
        "equal thing of one type."
    )
    try:
        problem = one.compare(sought, found)
    except TypeError as error:
        check(False, sentence, picture=f"yours: TypeError: {error}")
    else:
        check(problem, sentence)


@pytest.mark.exercise(COMPARE)
def test_literals_may_be_ignored() -> None:
    one, pattern, _ = search(relu_of_sum, relu_of_sum, ignore_literals=True)
    same(
        one.compare(1, 2),
        "",
        "With ignore_literals a constant of the pattern takes any constant.",
    )
    check(
        one.compare([1, 2], [1]),
        "ignore_literals is about constants; lists must still be of one "
        "length.",
    )
    check(
        one.compare(pattern["add"], 2),
        "ignore_literals is about constants of the pattern: add is an "
        "operation, and 2 is not its result.",
    )
    check(
        one.compare(1, pattern["add"]),
        "The pattern has the constant 1 and the graph a node. ignore_literals "
        "lets a constant be another constant, but not a value that is "
        "computed: `holds_node` tells them apart.",
    )
    inside = slice(None, pattern["add"])
    for sought, found in ((inside, 3), (3, inside)):
        check(
            one.compare(sought, found),
            f"The pattern has {sought!r} and the graph {found!r}. A slice with "
            "a node in it is no constant, on either side: the node would have "
            "no partner.",
        )
    same(
        one.compare((0, 1), 3),
        "",
        "The pattern has the constant (0, 1) and the graph 3. A tuple of "
        "numbers is a constant, too, and ignore_literals takes any other.",
    )
    for literal, other in ((None, 2), (2, None), ("sum", 0)):
        same(
            one.compare(literal, other),
            "",
            f"The pattern has {literal!r} and the graph {other!r}: None is a "
            "constant, too, and ignore_literals takes any.",
        )


@pytest.mark.exercise(COMPARE)
def test_an_input_is_one_value_where_literals_are_ignored() -> None:
    one, pattern, graph = search(
        lambda a: a * a, lambda x: x * 2, ignore_literals=True
    )
    one.nodes_map[pattern["a"]] = graph["x"]
    check(
        one.compare(pattern["a"], 2),
        "The pattern is a * a and the graph x * 2. Input a is x, and the 2 is "
        "not x: with ignore_literals, too, an input stands for one value, or "
        "x * 2 would be replaced by the square of x.",
    )


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


def match_of(
    one: Search,
    pattern: dict[str, Node],
    graph: dict[str, Node],
    **pairs: str,
) -> InternalMatch:
    """A match, written down by hand: pattern's name = graph's name."""
    nodes_map = {pattern[a]: graph[b] for a, b in pairs.items()}
    match = InternalMatch(list(one.pattern.anchors), dict(nodes_map))
    match.returning_nodes = [nodes_map[node] for node in one.pattern.returning]
    return match


@pytest.mark.exercise(OBSTACLE)
def test_nothing_is_in_the_way() -> None:
    one, pattern, graph = search(relu_of_sum, relu_of_sum)
    match = match_of(one, pattern, graph, add="add", relu="relu")
    same(
        one.obstacle(match),
        "",
        "This match shares nothing with others, and nothing else uses it: "
        "obstacle answers with the empty text.",
    )


@pytest.mark.exercise(OBSTACLE)
def test_matches_must_not_overlap() -> None:
    one, pattern, graph = search(relu_of_sum, relu_of_sum)
    match = match_of(one, pattern, graph, add="add", relu="relu")
    one.taken.add(graph["add"])
    check(
        one.obstacle(match),
        "An earlier match has taken add, and this one needs it, too: one "
        "shared node is enough, a node can be replaced only once.",
    )


@pytest.mark.exercise(OBSTACLE)
def test_an_input_may_have_been_taken() -> None:
    one, pattern, graph = search(relu_of_sum, relu_of_sum)
    match = match_of(one, pattern, graph, a="a", add="add", relu="relu")
    one.taken.add(graph["a"])
    same(
        one.obstacle(match),
        "",
        "Input a of this match is what an earlier match returns, and so it "
        "is taken. That is fine: inputs are not erased, so only "
        "match.operations() must not be taken.",
    )


@pytest.mark.exercise(OBSTACLE)
def test_of_overlapping_matches_the_first_is_kept() -> None:
    pattern = graph_of(lambda a: torch.neg(torch.neg(a)))
    graph = graph_of(lambda x: torch.neg(torch.neg(torch.neg(x))))
    kept = SubgraphMatcher(pattern).match(graph)
    same(
        [str(match.returning_nodes[0]) for match in kept],
        ["neg_1"],
        "neg(neg(a)) in neg(neg(neg(x))): it is found at neg_1, and again at "
        "neg_2, where it shares neg_1. Only the first is kept.",
    )
    every = SubgraphMatcher(pattern, remove_overlapping_matches=False)
    same(
        [str(match.returning_nodes[0]) for match in every.match(graph)],
        ["neg_1", "neg_2"],
        "With remove_overlapping_matches=False nothing is taken, and both "
        "matches are wanted.",
    )


@pytest.mark.exercise(OBSTACLE)
def test_a_match_must_be_convex() -> None:
    def two(a: torch.Tensor, b: torch.Tensor) -> list[torch.Tensor]:
        return [torch.relu(a), torch.neg(b)]

    one, pattern, graph = search(two, lambda x: torch.neg(torch.relu(x) * 2))
    match = match_of(one, pattern, graph, relu="relu", neg="neg")
    check(
        one.obstacle(match),
        "mul uses relu and neg uses mul: mul would have to run after the "
        "replacement and before it. A value leaves the match and comes back.",
    )


@pytest.mark.exercise(OBSTACLE)
def test_two_values_of_one_chain_must_be_convex() -> None:
    def two(a: torch.Tensor, b: torch.Tensor) -> list[torch.Tensor]:
        total = torch.relu(a)
        return [total, total * b]

    def program(x: torch.Tensor) -> torch.Tensor:
        total = torch.relu(x)
        return total * torch.neg(total)

    one, pattern, graph = search(two, program)
    match = match_of(one, pattern, graph, relu="relu", mul="mul", b="neg")
    check(
        one.obstacle(match),
        "The pattern returns relu(a) and relu(a) * b: two values, although "
        "matching begins at one anchor. In the graph, neg uses the relu and "
        "mul uses neg. A value leaves the match and comes back.",
    )


@pytest.mark.exercise(OBSTACLE)
def test_several_values_may_be_returned() -> None:
    def two(a: torch.Tensor, b: torch.Tensor) -> list[torch.Tensor]:
        return [torch.relu(a), torch.neg(b)]

    one, pattern, graph = search(two, lambda x, y: torch.relu(x) * torch.neg(y))
    match = match_of(one, pattern, graph, relu="relu", neg="neg")
    same(
        one.obstacle(match),
        "",
        "The pattern returns two values, and only mul, outside, uses them: "
        "neither comes back, so `is_convex` says yes.",
    )


def writes_between(x: torch.Tensor) -> torch.Tensor:
    """A write to x while neg(x) waits to be read."""
    before = torch.neg(x)
    x.add_(1)
    return torch.relu(before)


@pytest.mark.exercise(OBSTACLE)
def test_writes_are_respected_where_asked_for() -> None:
    def pattern_of(a: torch.Tensor) -> torch.Tensor:
        return torch.relu(torch.neg(a))

    for asked in (False, True):
        one, pattern, graph = search(
            pattern_of, writes_between, respect_mutations=asked
        )
        match = match_of(one, pattern, graph, neg="neg", relu="relu")
        same(
            bool(one.obstacle(match)),
            asked,
            f"x.add_(1) is between neg and relu, and respect_mutations is "
            f"{asked}: moves_across knows, and is asked if the option is "
            "set.",
        )


@pytest.mark.exercise(OBSTACLE)
def test_writes_are_not_respected_unasked() -> None:
    matcher = SubgraphMatcher(graph_of(lambda a: torch.relu(torch.neg(a))))
    same(
        len(matcher.match(graph_of(writes_between))),
        1,
        "x.add_(1) is between neg and relu, and no option was given: the "
        "default is that of torch.fx, which does not look at writes.",
    )


def reads_between(x: torch.Tensor) -> list[torch.Tensor]:
    """A read of x behind a write to it, while the match goes on."""
    after = x.add_(1)
    read = torch.exp(x)
    return [torch.relu(after), read]


@pytest.mark.exercise(OBSTACLE)
def test_a_match_that_writes_is_respected_too() -> None:
    one, pattern, graph = search(
        lambda a: torch.relu(a.add_(1)), reads_between, respect_mutations=True
    )
    match = match_of(one, pattern, graph, add_="add_", relu="relu")
    check(
        one.obstacle(match),
        "The match writes to x in add_, and exp reads x before relu: what "
        "replaces the match would write too late. `moves_across` knows.",
    )


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


@pytest.mark.exercise(COMPARE)
def test_the_reasons_for_arguments() -> None:
    same(
        reason_of(lambda a: a + 2, lambda x: x + 3),
        "3 instead of 2",
        TOLD,
    )
    same(
        reason_of(lambda a, b: torch.cat([a, b]), lambda x: torch.cat([x])),
        "1 items instead of 2",
        TOLD,
    )
    one, pattern, _ = search(relu_of_sum, relu_of_sum)
    same(one.compare(pattern["add"], 3), "add is not 3", TOLD)


@pytest.mark.exercise(OBSTACLE)
def test_the_reasons_for_matches() -> None:
    def two(a: torch.Tensor, b: torch.Tensor) -> list[torch.Tensor]:
        return [torch.relu(a), torch.neg(b)]

    one, pattern, graph = search(two, lambda x: torch.neg(torch.relu(x) * 2))
    match = match_of(one, pattern, graph, relu="relu", neg="neg")
    same(
        one.obstacle(match),
        "a value leaves the match and comes back into it",
        TOLD,
    )
    one.taken.add(graph["neg"])
    same(one.obstacle(match), "it shares nodes with an earlier match", TOLD)


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
