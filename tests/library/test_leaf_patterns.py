"""A leaf function (fx.wrap) as a pattern or replacement is a call of it."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.fx

import fx
from fx.extra.matching.explain import explain
from fx.passes.utils.matcher_utils import SubgraphMatcher
from fx.rewriting.rules import Rule, rewrite_until_stable
from fx.rewriting.templates import graph_of
from fx.use_def.values import AnyValue
from tests.library.memory_programs import flat

X = torch.linspace(-1, 1, 5)


@fx.wrap
def scaled(
    x: AnyValue, by: AnyValue = 2.0, *, shift: AnyValue = 0.0
) -> AnyValue:
    """A leaf with a default and a keyword."""
    return x * by + shift


@fx.wrap
def gelu2(x: AnyValue) -> AnyValue:
    """A leaf of one argument."""
    return x * torch.sigmoid(1.7 * x)


@fx.wrap
def many(*xs: AnyValue) -> AnyValue:
    """A leaf of any number of arguments."""
    return sum(xs)


hypot = math.hypot
fx.wrap("hypot")
fx.wrap("flat")  # which another module has defined


def marked_by_torch(x: AnyValue) -> AnyValue:
    """A leaf for torch.fx."""
    return x + 1


torch.fx.wrap("marked_by_torch")


def targets(gm: fx.GraphModule) -> list[str]:
    """The names of what is called."""
    calls = [node.target for node in gm.graph.nodes if "call" in node.op]
    return [getattr(each, "__name__", str(each)) for each in calls]


@pytest.mark.parametrize(
    ("leaf", "model"),
    [
        (gelu2, lambda x: gelu2(x)),
        (marked_by_torch, lambda x: marked_by_torch(x)),
        (flat, lambda x: flat(x)),
    ],
)
def test_a_leaf_is_found_where_it_is_called(
    leaf: Callable[..., AnyValue], model: Callable[..., AnyValue]
) -> None:
    gm = fx.symbolic_trace(model)
    assert len(fx.replace_pattern(gm, leaf, torch_gelu)) == 1
    assert targets(gm) == ["gelu"]


def torch_gelu(x: AnyValue) -> AnyValue:
    """A replacement."""
    return torch.nn.functional.gelu(x)


def test_in_a_trace() -> None:
    gm = fx.symbolic_trace(lambda x: gelu2(x) + gelu2(x + 1))
    assert len(fx.replace_pattern(gm, gelu2, torch_gelu)) == 2
    expected = torch_gelu(X) + torch_gelu(X + 1)
    torch.testing.assert_close(gm(X), expected)


def program(x: AnyValue) -> AnyValue:
    """All ways to call one leaf."""
    return (
        scaled(x)
        + scaled(x, 3.0)
        + scaled(x=x, by=4.0)
        + scaled(x, shift=x + 1)
        + scaled(shift=1.0, x=x)
    )


def unscaled(x: AnyValue, by: AnyValue, shift: AnyValue) -> AnyValue:
    """What a call of `scaled` means."""
    return torch.add(torch.mul(x, by), shift)


def test_it_does_not_matter_how_a_leaf_is_called() -> None:
    gm = fx.symbolic_trace(program)
    assert len(fx.replace_pattern(gm, scaled, unscaled)) == 5
    assert "scaled" not in targets(gm)
    torch.testing.assert_close(gm(X), program(X))


def test_nor_inside_of_a_pattern() -> None:
    gm = fx.symbolic_trace(program)
    found = fx.replace_pattern(gm, lambda x: scaled(x, 2.0), lambda x: x.mul(2))
    assert len(found) == 1
    torch.testing.assert_close(gm(X), program(X))


def test_a_leaf_as_the_replacement() -> None:
    gm = fx.symbolic_trace(lambda x: torch.relu(x) + 1)
    assert len(fx.replace_pattern(gm, lambda x: torch.relu(x), gelu2)) == 1
    assert targets(gm) == ["gelu2", "add"]
    assert "gelu2" in targets(fx.symbolic_trace(gm)), "it is a leaf again"
    torch.testing.assert_close(gm(X), gelu2(X) + 1)


def test_both_are_leaves() -> None:
    gm = fx.symbolic_trace(lambda x: gelu2(gelu2(x)))
    assert len(fx.replace_pattern(gm, gelu2, marked_by_torch)) == 2
    torch.testing.assert_close(gm(X), X + 2)


def test_other_numbers_of_inputs_are_refused() -> None:
    gm = fx.symbolic_trace(program)
    with pytest.raises(AssertionError, match=r"3 vs 1.*the same inputs"):
        fx.replace_pattern(gm, scaled, torch_gelu)


@pytest.mark.parametrize("leaf", [many, math.hypot])
def test_a_leaf_of_any_number_of_arguments(
    leaf: Callable[..., AnyValue],
) -> None:
    gm = fx.symbolic_trace(lambda x: many(x, x))
    with pytest.raises(TypeError, match=r"leaf function.*lambda x: \w+\(x\)"):
        fx.replace_pattern(gm, leaf, torch_gelu)
    assert len(fx.replace_pattern(gm, lambda x: many(x, x), torch_gelu)) == 1


def test_in_rules_matchers_and_explanations() -> None:
    gm = fx.symbolic_trace(lambda x: gelu2(gelu2(x)))
    assert len(SubgraphMatcher(graph_of(gelu2)).match(gm.graph)) == 2
    text = explain(gm, gelu2, print_output=False)
    assert text.startswith("2 match(es)")
    assert rewrite_until_stable(gm, [Rule(gelu2, torch_gelu)]) == 2


def test_a_function_that_is_not_a_leaf_is_traced() -> None:
    gm = fx.symbolic_trace(lambda x: x * torch.sigmoid(1.7 * x))
    assert len(fx.replace_pattern(gm, plain, torch_gelu)) == 1


def plain(x: AnyValue) -> AnyValue:
    """What gelu2 does, and is not marked."""
    return x * torch.sigmoid(1.7 * x)
