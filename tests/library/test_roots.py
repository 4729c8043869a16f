"""Roots that a trace cannot take whole: what it advises can be done."""

from __future__ import annotations

import types
from collections.abc import Callable

import pytest
import torch
from torch import nn

import fx
from fx.use_def.values import AnyValue

X = torch.linspace(-1, 1, 6).view(2, 3)


class Net(nn.Module):
    """A root."""

    def __init__(self) -> None:
        """Make a child."""
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run it."""
        return torch.relu(self.linear(x))


class Calls(Net):
    """A root whose class has a `__call__`."""

    def __call__(self, x: torch.Tensor) -> AnyValue:
        """Do more than forward."""
        return super().__call__(x) + 1


def with_hooks() -> nn.Module:
    """A root with a hook."""
    net = Net()
    net.register_forward_hook(lambda module, args, result: result + 1)
    return net


def with_a_method() -> nn.Module:
    """A root with a forward of its own, as libraries set it."""
    net = Net()
    new = types.MethodType(lambda self, x: self.linear(x) + 1, net)
    vars(net)["forward"] = new
    return net


def with_a_wrapper() -> nn.Module:
    """A root with a forward of its own around that of its class."""
    net = Net()
    old = net.forward
    vars(net)["forward"] = lambda x: old(x) + 1
    return net


@pytest.mark.parametrize(
    "make", [Calls, with_hooks, with_a_method, with_a_wrapper]
)
@pytest.mark.filterwarnings("ignore:0, a Net, is traced into and has hooks")
def test_the_advice_records_all(make: Callable[[], nn.Module]) -> None:
    root = make()
    with pytest.warns(UserWarning, match=r"torch\.nn\.Sequential\(root\)"):
        fx.symbolic_trace(root)
    gm = fx.symbolic_trace(torch.nn.Sequential(root))
    torch.testing.assert_close(gm(X), root(X))


@pytest.mark.parametrize("is_run", [False, True])
def test_a_root_that_torch_compile_has_made(is_run: bool) -> None:
    root: AnyValue = torch.compile(Net(), backend="eager")
    if is_run:
        root(X)
    with pytest.raises(NotImplementedError, match="has made of a Net") as said:
        fx.symbolic_trace(root)
    assert "root._orig_mod" in str(said.value)
    assert "torch.compile(gm)" in str(said.value)
    gm = fx.symbolic_trace(root._orig_mod)
    torch.testing.assert_close(torch.compile(gm, backend="eager")(X), root(X))


def test_a_root_that_compiles_itself_is_traced() -> None:
    root: AnyValue = Net()
    root.compile(backend="eager")
    torch.testing.assert_close(fx.symbolic_trace(root)(X), root(X))
