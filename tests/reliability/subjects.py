"""What the generated programs of `programs` and `meta` use, importable.

Leaf functions, custom operators, classes of values, a hook.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple, TypeAlias, cast

import torch
from torch import nn

import fx

AnyValue: TypeAlias = Any


class Pair(NamedTuple):
    """A named tuple of two values."""

    left: AnyValue
    right: AnyValue


@dataclasses.dataclass
class Note:
    """A dataclass, one of whose fields is not given to its constructor."""

    node: AnyValue
    rest: list[AnyValue] = dataclasses.field(default_factory=list)
    cost: AnyValue = dataclasses.field(init=False, default=0)


class Thing:
    """An object like any other."""

    def __init__(self, held: AnyValue) -> None:
        self.held = held

    def method(self) -> AnyValue:
        """What it holds."""
        return self.held


class Slotted:
    """An object without a dict."""

    __slots__ = ("held",)

    def __init__(self, held: AnyValue) -> None:
        self.held = held


def added(values: dict[str, AnyValue]) -> torch.Tensor:
    """The sum of what is in a nested container."""
    leaves = torch.utils._pytree.tree_leaves(values)
    return torch.stack(leaves).sum(0)


def of_pair(pair: Pair, *, scale: float = 1.0) -> torch.Tensor:
    """A function of a named tuple."""
    result: torch.Tensor = pair.left * scale - pair.right
    return result


def doubled(
    module: nn.Module, inputs: AnyValue, output: torch.Tensor
) -> AnyValue:
    """A forward hook."""
    return output * 2


class Inner(nn.Module):
    """A module that is traced through."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(4))
        self.act = nn.Tanh()

    def forward(self, x: AnyValue, y: AnyValue = None) -> AnyValue:
        return self.act(x * self.weight) + y


class Root(nn.Module):
    """The children and tensors of every program."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.same = self.linear
        self.tied = nn.Linear(4, 4)
        self.tied.weight = self.linear.weight
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), self.linear)
        self.blocks = nn.ModuleList([nn.Linear(4, 4), nn.LayerNorm(4)])
        self.heads = nn.ModuleDict({"out": nn.Linear(4, 4, bias=False)})
        self.hooked = nn.Linear(4, 4)
        self.hooked.register_forward_hook(doubled)
        self.inner = Inner()
        self.quiet = nn.ReLU(inplace=True)
        self.scale = nn.Parameter(torch.rand(4))
        self.register_buffer("offset", torch.rand(4))
        parts = [nn.Parameter(torch.rand(4)) for _ in range(2)]
        self.parts = nn.ParameterList(parts)

    @property
    def gain(self) -> torch.Tensor:
        """A value that is computed from a parameter."""
        return self.scale * 2


for _function in ("added", "of_pair"):
    fx.wrap(_function)
    torch.fx.wrap(_function)

_DEFINED: AnyValue = cast(AnyValue, torch.library).Library(
    "fx_reliability", "DEF"
)
_DEFINED.define("double(Tensor x) -> Tensor")
_DEFINED.define("bump_(Tensor(a!) x) -> Tensor(a!)")


def _double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def _bump(x: torch.Tensor) -> torch.Tensor:
    return x.add_(1)


_DEFINED.impl("double", _double, "CompositeImplicitAutograd")
_DEFINED.impl("bump_", _bump, "CompositeImplicitAutograd")
