"""Passes: equal calls computed once, and never where one could tell."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from functools import partial

import pytest
import torch
import torch.fx
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx as their_make_fx
from torch.fx.passes.dialect.common import cse_pass as theirs

import fx
from fx.experimental.proxy_tensor import make_fx
from fx.passes.dialect.common.cse_pass import CSEPass, get_CSE_banned_ops
from fx.use_def.values import AnyValue
from tests.library.memory_programs import flat, outcome, program
from tests.zoo import ZOO, Network, borrow

aten = torch.ops.aten


def merged(gm: AnyValue, **options: AnyValue) -> int:
    """How many calls the pass leaves out; what is computed must stay."""
    before = str(gm.graph)
    result: AnyValue = CSEPass(**options)(gm)
    assert str(gm.graph) == before
    result.graph_module.graph.lint()
    fewer = len(gm.graph.nodes) - len(result.graph_module.graph.nodes)
    assert result.modified == (fewer > 0)
    assert result.modified == (result.graph_module is not gm)
    return fewer


def traced(f: Callable[[torch.Tensor], AnyValue]) -> AnyValue:
    """A function of one tensor, traced."""
    f.__annotations__["x"] = torch.Tensor
    gm = fx.symbolic_trace(f)
    result: AnyValue = CSEPass()(gm)
    x = torch.linspace(-1, 1, 4)
    torch.testing.assert_close(result.graph_module(x.clone()), f(x.clone()))
    return gm


# -- where torch.fx is right -------------------------------------------------


def chain(x: AnyValue) -> AnyValue:
    a = x.cos()
    b = x.cos()
    c = a + a
    d = b + b
    return c + d


def reductions(x: AnyValue) -> AnyValue:
    a, b = x.sum(dim=1), x.sum(dim=1)
    return a + b + x.sum() + x.sum()


def lists(x: AnyValue) -> AnyValue:
    return torch.cat((x, x)) + torch.cat((x, x))


def random_numbers(x: AnyValue) -> AnyValue:
    return torch.rand_like(x) + torch.rand_like(x) + torch.randn(4).sum()


def nothing(x: AnyValue) -> AnyValue:
    return x + (x + 1)


def kwargs(x: AnyValue) -> AnyValue:
    ones = torch.ones_like(x, dtype=torch.double)
    return ones + torch.ones_like(x, dtype=torch.double)


@pytest.mark.parametrize(
    "f", [chain, reductions, lists, random_numbers, nothing, kwargs]
)
def test_graphs_of_aten(f: Callable[..., AnyValue]) -> None:
    x = torch.randn(2, 2)
    ours, beside = make_fx(f)(x), their_make_fx(f)(x)
    banned = theirs.get_CSE_banned_ops()
    expected: AnyValue = theirs.CSEPass(banned)(beside)
    found: AnyValue = CSEPass()(ours)
    assert found.modified == expected.modified
    assert found.graph_module.code == expected.graph_module.code
    torch.manual_seed(0)
    value = f(x)
    torch.manual_seed(0)
    torch.testing.assert_close(found.graph_module(x), value)


def test_banned_operators() -> None:
    gm = make_fx(lambda x: (x + 1) * (x + 1))(torch.ones(2))
    assert merged(gm) == 1
    assert merged(gm, banned_ops=[aten.add]) == 0
    assert merged(gm, banned_ops=[torch.add, aten.mul]) == 1
    assert get_CSE_banned_ops() == theirs.get_CSE_banned_ops()


@pytest.mark.parametrize("network", ZOO, ids=lambda one: one.name)
def test_networks(network: Network) -> None:
    with borrow(network, training=False) as model:
        gm = fx.symbolic_trace(model)
        result: AnyValue = CSEPass()(gm)
        inputs = network.inputs()
        expected = model(*inputs)
        torch.testing.assert_close(
            result.graph_module(*inputs), expected, rtol=0, atol=0
        )


class Shared(nn.Module):
    """A module that is called twice with one input."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))

    def forward(self, x: AnyValue) -> AnyValue:
        return self.inner(x) + self.inner(x)


def test_modules_are_merged_while_they_change_nothing() -> None:
    assert merged(fx.symbolic_trace(Shared())) == 0  # its statistics
    assert merged(fx.symbolic_trace(Shared().eval())) == 2
    hooked = Shared().eval()
    hooked.inner[0].register_forward_hook(lambda *_: None)
    assert merged(fx.symbolic_trace(hooked)) == 0


# -- where it is not ---------------------------------------------------------


def constants(x: AnyValue) -> AnyValue:
    x = torch.ones_like(x, dtype=torch.int64)
    return torch.mul(x, 2), torch.mul(x, 2.0), torch.mul(x, True)


def signs_of_zero(x: AnyValue) -> AnyValue:
    return torch.atan2(torch.mul(x, 0.0), torch.mul(x, -0.0))


def write_between(x: AnyValue) -> AnyValue:
    y = torch.add(x, 1)
    a = torch.exp(y)
    y.add_(1)
    return a + torch.exp(y)


def write_through_a_view(x: AnyValue) -> AnyValue:
    y = torch.add(x, 1)
    a = torch.exp(y)
    y.view(2, 2)[0].zero_()
    return a + torch.exp(y)


def write_into_the_input(x: AnyValue) -> AnyValue:
    a = torch.exp(x)
    x.add_(1)
    return a + torch.exp(x)


def write_into_the_first(x: AnyValue) -> AnyValue:
    a = torch.exp(x)
    a.add_(1)
    return a + torch.exp(x)


def write_into_the_second_later(x: AnyValue) -> AnyValue:
    a, b = torch.exp(x), torch.exp(x)
    c = torch.view_copy(a, [-1])
    b.view(2, 2).add_(1)
    return a + b + c


def write_with_out(x: AnyValue) -> AnyValue:
    a, b = torch.exp(x), torch.exp(x)
    torch.neg(x, out=b)
    return a + b


def shape_changed(x: AnyValue) -> AnyValue:
    a, b = x.view(-1), x.view(-1)
    a.unsqueeze_(0)
    return a.dim(), b.dim()


def both_returned(x: AnyValue) -> AnyValue:
    return torch.exp(x), torch.exp(x)


def returned_in_a_view(x: AnyValue) -> AnyValue:
    return torch.exp(x), [torch.exp(x).view(-1)]


def identity(x: AnyValue) -> AnyValue:
    return torch.exp(x) is torch.exp(x)


def draws(x: AnyValue) -> AnyValue:
    a = nn.functional.dropout(x, 0.5, True)
    return a + nn.functional.dropout(x, 0.5, True)


@pytest.mark.parametrize(
    "f",
    [
        constants,
        signs_of_zero,
        write_between,
        write_through_a_view,
        write_into_the_input,
        write_into_the_first,
        write_into_the_second_later,
        write_with_out,
        shape_changed,
        both_returned,
        returned_in_a_view,
    ],
)
def test_calls_that_only_seem_equal(f: Callable[..., AnyValue]) -> None:
    assert merged(traced(f)) == 0


def test_random_draws_stay() -> None:
    draws.__annotations__["x"] = torch.Tensor
    assert merged(fx.symbolic_trace(draws)) == 0


def built(*calls: tuple[AnyValue, ...]) -> AnyValue:
    """A module that calls functions; a number is the value of that call."""
    graph = fx.Graph()
    values = [graph.call_function(torch.clone, (graph.placeholder("x"),))]
    for function, *places in calls:
        inputs = tuple(values[place] for place in places)
        values.append(graph.call_function(function, inputs))
    graph.output(values[-1])
    return fx.GraphModule({}, graph)


def test_who_asks_whether_two_values_are_one() -> None:
    twice = (torch.exp, 0), (torch.exp, 0)
    assert merged(built(*twice, (torch.add, 1, 2))) == 1
    assert merged(built(*twice, (operator.is_, 1, 2))) == 0
    assert merged(built(*twice, (id, 2), (id, 1), (operator.eq, 3, 4))) == 0


def test_a_users_function_may_write_or_compare() -> None:
    twice = (torch.exp, 0), (torch.exp, 0)
    assert merged(built(*twice, (flat, 2), (torch.add, 1, 3))) == 0
    between = built(
        (torch.exp, 0), (flat, 0), (torch.exp, 0), (torch.add, 1, 3)
    )
    assert merged(between) == 0


def test_a_change_of_mode_between_them() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    a = graph.call_function(torch.exp, (x,))
    graph.call_function(torch._C._set_grad_enabled, (False,))
    b = graph.call_function(torch.exp, (x,))
    graph.call_function(torch._C._set_grad_enabled, (True,))
    graph.output(graph.call_function(torch.add, (a, b)))
    assert merged(fx.GraphModule({}, graph)) == 0


def test_writes_elsewhere_do_no_harm() -> None:
    def forward(x: torch.Tensor) -> AnyValue:
        other = torch.add(x, 1)
        a = torch.exp(x)
        other.mul_(a)
        return a + torch.exp(x) + other

    assert merged(traced(forward)) == 1


def test_views_are_shared_though_their_memory_is_written() -> None:
    def forward(x: torch.Tensor) -> AnyValue:
        y = torch.add(x, 1)
        a, b = y.view(-1), y.view(-1)
        y.add_(1)
        return a + b

    assert merged(traced(forward)) == 1


def test_equal_calls_of_equal_calls() -> None:
    def forward(x: torch.Tensor) -> AnyValue:
        a = torch.exp(torch.neg(torch.chunk(x, 2)[0]))
        return a + torch.exp(torch.neg(torch.chunk(x, 2)[0]))

    assert merged(traced(forward)) == 4


def test_a_third_call_is_not_merged_with_a_returned_one() -> None:
    def forward(x: torch.Tensor) -> AnyValue:
        a, b, c = torch.exp(x), torch.exp(x), torch.exp(x)
        return a.sum(), b, c

    assert merged(traced(forward)) == 1


def test_the_object_of_a_method_may_be_no_tensor() -> None:
    gm = fx.symbolic_trace(lambda x: x.pop() + x.pop())
    assert merged(gm) == 0
    assert merged(fx.symbolic_trace(lambda x: x.add(1) + x.add(1))) == 0


@pytest.mark.parametrize("seed", range(4))
def test_any_program(seed: int) -> None:
    drawn, fewer = random.Random(seed), 0
    for _ in range(700):
        recipe = [
            (
                drawn.choice((0, 0, 1, 1, 2, 3, 4, 4, 5, 5, 6, 7)),
                drawn.randrange(4),
                drawn.randrange(3),
            )
            for _ in range(drawn.randint(3, 10))
        ]
        returned = [drawn.randrange(12) for _ in range(drawn.randint(1, 3))]
        gm = fx.GraphModule({}, program(recipe, returned))
        result: AnyValue = CSEPass()(gm)
        fewer += result.modified
        same = outcome(result.graph_module) == outcome(gm)
        assert same, f"{gm.code}\n{result.graph_module.code}"
        again: AnyValue = CSEPass()(result.graph_module)
        assert not again.modified
    assert fewer > 60


def test_time_grows_with_the_nodes() -> None:
    graph = fx.Graph()
    value = graph.placeholder("x")
    add = partial(graph.call_function, torch.add)
    for _ in range(2000):
        value = graph.call_function(
            torch.mul, (add((value, 1)), add((value, 1)))
        )
    graph.output(value)
    assert merged(fx.GraphModule({}, graph)) == 2000
