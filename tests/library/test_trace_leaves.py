"""A leaf is recorded only as the root has it; and which results are one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrizations

import fx

AnyValue: TypeAlias = Any

X: Final = torch.ones(2, 3)


class Net(nn.Module):
    """A layer, and a program that may change it."""

    def __init__(self, program: Callable[..., AnyValue]) -> None:
        """Make it of a program of the module and its input."""
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.drop = nn.Dropout(0.9)
        self.norm = parametrizations.weight_norm(nn.Linear(3, 3))
        self.program = program

    def forward(self, x: torch.Tensor) -> AnyValue:
        """Run the program."""
        return self.program(self, x)


def with_weight(net: Net, x: torch.Tensor) -> AnyValue:
    """Call a layer with a weight that is computed."""
    given = {"weight": x.new_ones(3, 3) * x.sum()}
    return torch.func.functional_call(net.layer, given, (x,))


def in_evaluation(net: Net, x: torch.Tensor) -> AnyValue:
    """Call a dropout that is switched off meanwhile."""
    net.drop.eval()
    y = net.drop(x)
    net.drop.train()
    return y


def with_setting(net: Net, x: torch.Tensor) -> AnyValue:
    """Call a dropout with another probability."""
    net.drop.p, before = 0.0, net.drop.p
    y = net.drop(x)
    net.drop.p = before
    return y


def calls(gm: fx.GraphModule) -> list[str]:
    """The modules that a graph calls, without its guards."""
    nodes = gm.graph.find_nodes(op="call_module")
    return [str(node.target) for node in nodes if node.target != "_guards"]


@pytest.mark.parametrize("program", [with_weight, in_evaluation, with_setting])
@pytest.mark.parametrize("check", [True, False])
def test_a_changed_leaf_is_traced_through(
    program: Callable[..., AnyValue], check: bool
) -> None:
    net = Net(program)
    gm = fx.trace(net, X, check=check)
    assert calls(gm) == []
    for x in (X, torch.randn(5, 3)):
        assert torch.equal(gm(x), net(x))


def test_what_a_leaf_changes_itself_does_not_count() -> None:
    net = Net(lambda net, x: net.norm(net.norm(x)))
    gm = fx.trace(net, X)
    assert calls(gm) == ["norm", "norm"]


def test_a_backward_hook_goes_on_running() -> None:
    net = nn.Sequential(Net(lambda net, x: net.layer(x)))
    hooked: AnyValue = net[0]
    hooked.register_full_backward_hook(lambda m, i, o: (i[0] * 10,))
    gm = fx.trace(net, X)
    grads: list[AnyValue] = []
    for module in (net, gm):
        x = X.clone().requires_grad_()
        module(x).sum().backward()
        grads.append(x.grad)
    assert torch.equal(*grads)
    with pytest.raises(fx.TraceError, match="backward hook"):
        fx.trace(net[0], X)
    with torch.no_grad():
        fx.trace(net[0], X)


def test_a_changed_module_that_stays_whole_is_refused() -> None:
    net = Net(in_evaluation)
    net.drop.register_full_backward_hook(lambda m, i, o: None)
    with pytest.raises(fx.TraceError, match="changes the module drop"):
        fx.trace(net, X)


def leaf(x: torch.Tensor) -> AnyValue:
    """Give a result that is nested by the values of an input."""
    return (x, None) if x.sum() > 0 else {"a": (x, x + 1)}


def test_the_structure_of_a_leafs_result_is_checked() -> None:
    gm = fx.trace(lambda x: leaf(x)[0] * 2, X, leaves=[leaf])
    assert torch.equal(gm(X), X * 2)
    with pytest.raises(fx.GuardError, match=r"tuple\(0: Tensor, 1: None\)"):
        gm(-X)


IDENTICAL: Final = (
    lambda x: (x, x.mul_(2)),
    lambda x: (x, functional.relu(x, inplace=True)),
    lambda x: (x, torch.add(x, 1, out=x)),
    lambda x: (x, x.float()),
    lambda x: (x, x.to(torch.float32)),
    lambda x: (x, nn.ReLU(inplace=True)(x)),
)


@pytest.mark.parametrize("program", IDENTICAL)
def test_calls_that_give_back_their_input(program: AnyValue) -> None:
    def asks(x: torch.Tensor) -> AnyValue:
        one, two = program(x)
        return two * 2 if one is two else two + 1

    gm = fx.trace(asks, X.clone(), check=False)
    assert torch.equal(gm(X.clone()), asks(X.clone()))


def test_contiguous_is_the_same_if_that_was_asked() -> None:
    def asks(x: torch.Tensor) -> torch.Tensor:
        if not x.is_contiguous():
            return x
        return x * 2 if x.contiguous() is x else x + 1

    gm = fx.trace(asks, X, check=False)
    assert torch.equal(gm(X), X * 2)
    with pytest.raises(fx.GuardError, match="is_contiguous"):
        gm(torch.ones(3, 2).t())


@pytest.mark.parametrize("check", [True, False])
def test_a_program_that_freezes_a_leaf(check: bool) -> None:
    def frozen(net: Net, x: torch.Tensor) -> AnyValue:
        net.layer.requires_grad_(requires_grad=False)
        return net.layer(x)

    net = Net(frozen)
    gm = fx.trace(net, X, check=check)
    assert net.layer.weight.requires_grad
    assert not gm(X).requires_grad
