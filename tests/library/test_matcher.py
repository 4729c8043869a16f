"""SubgraphMatcher: against brute force, and where torch.fx's gives up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, Unpack, no_type_check

import pytest
import torch
from hypothesis import given, settings
from torch import nn

from fx._symbolic_trace import symbolic_trace
from fx.extra.matching.explain import explain
from fx.graph import Graph
from fx.passes.utils.matcher_utils import (
    InternalMatch,
    MatchOptions,
    SubgraphMatcher,
)
from fx.tracing.tracer import Tracer
from fx.use_def.values import AnyValue
from tests.library.counted import calls
from tests.library.random_graphs import (
    Recipe,
    all_matches,
    apart,
    build,
    recipes,
    small_recipes,
)

Traced: TypeAlias = Callable[..., Any] | nn.Module
"""A module, or a function without annotations, to be traced."""


def find(
    pattern: Traced, target: Traced, **options: Unpack[MatchOptions]
) -> list[InternalMatch]:
    """The matches of one traced program in another."""
    matcher = SubgraphMatcher(symbolic_trace(pattern).graph, **options)
    return matcher.match(symbolic_trace(target).graph)


# -- against brute force -----------------------------------------------------


@given(recipes, small_recipes)
@settings(max_examples=120, deadline=None)
def test_the_same_matches_as_brute_force(big: Recipe, small: Recipe) -> None:
    graph, pattern = build(big), build(small)
    expected = list(apart(all_matches(pattern, graph)))
    found = SubgraphMatcher(pattern).match(graph)
    assert [match.nodes_map for match in found] == expected


@given(recipes, small_recipes)
@settings(max_examples=60, deadline=None)
def test_the_same_overlapping_matches_as_brute_force(
    big: Recipe, small: Recipe
) -> None:
    graph, pattern = build(big), build(small)
    expected = list(all_matches(pattern, graph))
    matcher = SubgraphMatcher(pattern, remove_overlapping_matches=False)
    found = [match.nodes_map for match in matcher.match(graph)]
    assert found == expected


def test_brute_force_knows_what_a_match_is() -> None:
    """The yardstick itself, on what was counted by hand."""
    chain = build([(1, 0, 0)] * 5, inputs=1)
    pattern = build([(1, 0, 0)] * 2, inputs=1)
    assert len(list(all_matches(pattern, chain))) == 4
    assert len(list(apart(all_matches(pattern, chain)))) == 2


# -- size --------------------------------------------------------------------


def chain(length: int, op: Callable[..., Any] = torch.neg) -> Graph:
    """A chain of one operation."""
    graph = Graph()
    node = graph.placeholder("x")
    for _ in range(length):
        node = graph.call_function(op, (node,))
    graph.output(node)
    return graph


def work(graph: Graph, pattern: Graph) -> int:
    """How many calls of Python functions matching takes."""
    matcher = SubgraphMatcher(pattern)
    return calls(lambda: matcher.match(graph))


@pytest.mark.parametrize("pattern", [chain(1), chain(3), chain(2, torch.relu)])
def test_matching_is_linear(pattern: Graph) -> None:
    small, big = work(chain(500), pattern), work(chain(4_000), pattern)
    assert big < 8.2 * small


def test_unconnected_parts_are_paired_one_by_one() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    ones = [graph.call_function(torch.relu, (x,)) for _ in range(300)]
    others = [graph.call_function(torch.neg, (x,)) for _ in range(300)]
    graph.output((*ones, *others))
    pattern = symbolic_trace(lambda x, y: (torch.relu(x), torch.neg(x))).graph
    found = SubgraphMatcher(pattern).match(graph)
    assert [match.returning_nodes for match in found] == [
        [one, other] for one, other in zip(ones, others, strict=True)
    ]


def test_a_rare_inner_node_is_where_the_search_begins() -> None:
    graph = chain(2_000)
    place = next(n for i, n in enumerate(graph.nodes) if i == 1_000)
    with graph.inserting_before(place):
        rare = graph.call_function(torch.exp, (place.input_at(0),))
    place.args = (rare,)
    pattern = symbolic_trace(lambda x: torch.neg(torch.exp(x))).graph
    (match,) = SubgraphMatcher(pattern).match(graph)
    assert match.returning_nodes == [place]
    assert work(graph, pattern) < work(graph, chain(2)) / 3


# -- beyond torch.fx ---------------------------------------------------------


SPELLINGS: list[tuple[Traced, Traced]] = [
    (lambda x, y: x + y, lambda x, y: torch.add(x, y)),
    (lambda x, y: x + y, lambda x, y: x.add(y)),
    (lambda x, y: torch.add(x, other=y), lambda x, y: y + x),
    (lambda x, y: torch.add(x, y, alpha=1), lambda x, y: x + y),
    (lambda x: x * 2, lambda x: 2 * x),
    (lambda x: torch.relu(x), lambda x: x.relu()),
    (lambda x: nn.functional.relu(x), lambda x: torch.relu(x)),
    (lambda x: x**2, lambda x: torch.pow(x, 2)),
    (lambda x: -x, lambda x: torch.neg(x)),
    (lambda x: x.view((2, 3)), lambda x: x.view(2, 3)),
    (lambda x: torch.sum(x, dim=0), lambda x: x.sum(0)),
    (lambda x: x.sum(0, keepdim=False), lambda x: x.sum(0)),
    (lambda x, y: x / y, lambda x, y: torch.div(x, y)),
    (lambda x: torch.ops.aten.relu.default(x), lambda x: torch.relu(x)),
    (
        lambda a, b: torch.relu(a) + b,
        lambda a, b: b + torch.relu(a),
    ),
    (
        lambda a, b, c: (torch.relu(a) + b) * torch.neg(c),
        lambda a, b, c: torch.neg(c) * (b + torch.relu(a)),
    ),
    (
        lambda a, b: torch.neg(a) + torch.neg(torch.relu(b)),
        lambda a, b: torch.neg(torch.relu(b)) + torch.neg(a),
    ),
]


@pytest.mark.parametrize(("pattern", "target"), SPELLINGS)
def test_normalize_sees_through_spelling(
    pattern: Traced, target: Traced
) -> None:
    assert not find(pattern, target)
    assert len(find(pattern, target, normalize=True)) == 1
    assert len(find(target, pattern, normalize=True)) == 1


@pytest.mark.parametrize(
    ("pattern", "target"),
    [
        (lambda x, y: x - y, lambda x, y: torch.sub(x, y, alpha=2)),
        (lambda x: x - 1, lambda x: 1 - x),
        (lambda x, y: x + y, lambda x, y: x - y),
        (lambda x, y: torch.add(x, y), lambda x, y: torch.add(x, y, alpha=2)),
        (
            lambda x: torch.relu(x),
            lambda x: nn.functional.relu(x, inplace=True),
        ),
        (lambda x: torch.relu(x), lambda x: x.relu_()),
        (lambda x: x * 2, lambda x: x * 3),
    ],
)
def test_normalize_does_not_see_what_is_not_there(
    pattern: Traced, target: Traced
) -> None:
    assert not find(pattern, target, normalize=True)


def test_normalize_finds_what_is_found_without_it() -> None:
    def pattern(a: AnyValue, b: AnyValue, c: AnyValue) -> AnyValue:
        return torch.add(a, b, alpha=c)

    def target(a: AnyValue, b: AnyValue) -> AnyValue:
        return torch.add(a, b, alpha=1)

    assert len(find(pattern, target)) == 1
    assert len(find(pattern, target, normalize=True)) == 1


class Constant(nn.Module):
    """Multiplies by a tensor."""

    value: torch.Tensor

    def __init__(self, value: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("value", value)

    @no_type_check
    def forward(self, x):
        return x * self.value


def test_constants_are_compared_by_value_on_request() -> None:
    ones, zeros = Constant(torch.ones(2)), Constant(torch.zeros(2))
    assert find(ones, zeros)
    assert not find(ones, zeros, compare_constants=True)
    assert find(ones, Constant(torch.ones(2)), compare_constants=True)
    wide = Constant(torch.ones(2, dtype=torch.float64))
    assert not find(ones, wide, compare_constants=True)


def test_modules_match_by_class_on_request() -> None:
    pattern = nn.Sequential(nn.Linear(1, 1), nn.ReLU())
    target = nn.Sequential(nn.Tanh(), nn.Linear(4, 3), nn.ReLU())
    assert find(pattern, nn.Sequential(nn.Tanh(), nn.Tanh()))  # by path
    (match,) = find(pattern, target, modules_by_class=True)
    assert [n.target for n in match.operations()] == ["2", "1"]
    other = nn.Sequential(nn.Linear(1, 1), nn.GELU())
    assert not find(other, target, modules_by_class=True)


@no_type_check
def written_between(x):
    y = torch.relu(x)
    x.add_(10)
    return torch.neg(y)


def test_a_match_does_not_cross_a_mutation_on_request() -> None:
    @no_type_check
    def pattern(x):
        return torch.neg(torch.relu(x))

    assert find(pattern, written_between)
    assert not find(pattern, written_between, respect_mutations=True)
    assert find(pattern, pattern, respect_mutations=True)
    assert find(
        lambda x: torch.neg(x.add_(1)),
        lambda x: torch.neg(x.add_(1)),
        respect_mutations=True,
    )


@no_type_check
def read_between(x):
    y = x.add_(1)
    z = torch.exp(x)
    return torch.neg(y), z


@no_type_check
def negated_sum(x):
    return torch.neg(x.add_(1))


def test_a_write_of_the_match_does_not_cross_a_read_on_request() -> None:
    assert find(negated_sum, read_between)
    assert not find(negated_sum, read_between, respect_mutations=True)
    gm = symbolic_trace(read_between)
    text = explain(gm, negated_sum, print_output=False, respect_mutations=True)
    assert "may read what it writes" in text


def unknown(x: torch.Tensor) -> torch.Tensor:
    """A function that may write, for all that a graph can say."""
    return x.mul_(2)


def test_an_unknown_call_counts_as_a_write_on_request() -> None:
    @no_type_check
    def target(x):
        y = torch.relu(x)
        z = unknown(x)
        return torch.neg(y), z

    graph = Tracer(autowrap_functions=(unknown,)).trace(target)
    pattern = symbolic_trace(lambda x: torch.neg(torch.relu(x))).graph
    assert SubgraphMatcher(pattern).match(graph)
    careful = SubgraphMatcher(pattern, respect_mutations=True)
    assert not careful.match(graph)


# -- why not -----------------------------------------------------------------


def why_not(target: Traced, pattern: Traced) -> str:
    """What `explain` says."""
    return explain(symbolic_trace(target), pattern, print_output=False)


def test_an_explanation_counts_the_matches_that_it_does_not_list() -> None:
    def target(x: torch.Tensor) -> torch.Tensor:
        for _ in range(7):
            x = torch.relu(x)
        return x

    lines = why_not(target, lambda x: torch.relu(x)).splitlines()
    assert lines[0].startswith("7 match(es)")
    assert lines[5:7] == ["  matched: relu_4", "  and 2 more"]


def test_explain_marks_the_first_difference(
    capsys: pytest.CaptureFixture[str],
) -> None:
    @no_type_check
    def target(x, y):
        a = torch.relu(x + 1)
        return torch.tanh(torch.relu(y + 2) * a)

    gm = symbolic_trace(target)
    text = explain(gm, lambda x, y: torch.relu(x + 2) * torch.relu(y + 2))
    assert capsys.readouterr().out == text + "\n"
    assert "0 match(es)" in text
    assert "1 instead of 2" in text
    marked = [line.strip() for line in text.splitlines() if "  > " in line]
    assert [line.split(" :")[0] for line in marked] == ["> %add_1", "> %add"]
    assert "= %mul" in text


@pytest.mark.parametrize(
    ("target", "pattern", "reason"),
    [
        (
            lambda x: torch.relu(torch.neg(x)),
            lambda x: torch.relu(torch.exp(x)),
            "another operation",
        ),
        (
            lambda x: (lambda a: torch.relu(a) + a)(torch.neg(x)),
            lambda x: torch.relu(torch.neg(x)),
            "neg has users outside of the match",
        ),
        (
            lambda x: x + x,
            lambda x, y: x + y,
            "x is paired with another node of the pattern",
        ),
        (lambda x, y: x + y, lambda x: x + x, "x is x already"),
        (
            lambda x: torch.cat([x, x]),
            lambda x: torch.cat([x]),
            "2 items instead of 1",
        ),
        (
            lambda x: x.sum(dim=0),
            lambda x: x.sum(0),
            "other arguments, or other constants",
        ),
        (
            lambda x: torch.neg(torch.neg(torch.neg(x))),
            lambda x: torch.neg(torch.neg(x)),
            "1 match(es)",
        ),
        (
            lambda x: torch.relu(x),
            lambda x: x.relu(),
            "normalize=True finds those, too",
        ),
    ],
)
def test_explain_says_why(target: Traced, pattern: Traced, reason: str) -> None:
    assert reason in why_not(target, pattern)


def test_explain_says_that_a_value_comes_back() -> None:
    @no_type_check
    def target(x):
        a = torch.relu(x)
        return torch.neg(a + 1)

    pattern = symbolic_trace(lambda x, y: (torch.relu(x), torch.neg(y)))
    reasons = [
        one.reason
        for one in SubgraphMatcher(pattern.graph).mismatches(
            symbolic_trace(target).graph
        )
    ]
    assert "a value leaves the match and comes back into it" in reasons


def test_explain_says_which_replacement_has_no_place() -> None:
    @no_type_check
    def target(x):
        a = torch.relu(x)
        b = torch.exp(x)
        return torch.neg(a), b

    @no_type_check
    def pattern(x):
        return torch.neg(torch.relu(x))

    gm = symbolic_trace(target)
    for replacement, told in ((pattern, False), (negated_sum, True)):
        text = explain(
            gm,
            pattern,
            replacement,
            print_output=False,
            respect_mutations=True,
        )
        assert "1 match(es)" in text
        assert ("left alone: neg: the match has an effect" in text) is told


# -- constants ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("sought", "found", "fits"),
    [
        (torch.ones(2), torch.ones(2), True),
        (torch.ones(2), torch.ones(3), False),
        (torch.ones(2), torch.ones(1, 2), False),
        (torch.ones(2), torch.ones(2, dtype=torch.float64), False),
        (torch.ones(2), torch.ones(2, device="meta"), False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"b": 1}, False),
        ({"a": torch.ones(2)}, {"a": torch.ones(2)}, True),
        (slice(1, 2), slice(1, 2), True),
        (slice(1, 2), slice(True, 2), False),
        (slice(torch.ones(2), None), slice(torch.zeros(2), None), False),
        ([(1, [2.0])], [(1, [2])], False),
        ((), (1,), False),
        ({}, {}, True),
    ],
)
def test_constants_match_if_all_in_them_is_equal_and_of_one_type(
    sought: AnyValue, found: AnyValue, fits: bool
) -> None:
    def calling(constant: AnyValue) -> Graph:
        graph = Graph()
        x = graph.placeholder("x")
        graph.output(graph.call_function(isinstance, (x, constant)))
        return graph

    matches = SubgraphMatcher(calling(sought)).match(calling(found))
    assert len(matches) == fits
