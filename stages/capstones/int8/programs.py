"""Small networks with linears, each with something to get wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

WIDTH: Final = 16


class Case(NamedTuple):
    """A network, and which of its linears must have int8 weights.

    Attributes:
        build: makes the network.
        linears: the names of their nodes, separated by blanks.
        stays: the names of nodes that must compute what they did, and why.
        inputs: how many tensors of WIDTH x WIDTH it takes.
    """

    build: Callable[[], nn.Module]
    linears: str
    stays: dict[str, str]
    inputs: int = 1


def chain() -> nn.Module:
    """Two linears, one without a bias, and dropout, in training mode."""
    return nn.Sequential(
        nn.Linear(WIDTH, 24),
        nn.Dropout(0.5),
        nn.ReLU(),
        nn.Linear(24, WIDTH, bias=False),
    )


class Inner(nn.Module):
    """Holds a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(WIDTH, WIDTH))


class Functional(nn.Module):
    """Calls F.linear itself, and has a buffer named `scale`."""

    scale: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(WIDTH, WIDTH))
        self.b = nn.Parameter(torch.randn(WIDTH))
        self.inner = Inner()
        self.register_buffer("scale", torch.randn(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """Run."""
        x = F.linear(x, self.w, self.b) * self.scale
        return F.linear(bias=None, weight=self.inner.weight, input=x.tanh())


class Shared(nn.Module):
    """A module called at three places, and two more linears of its weight."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(WIDTH, WIDTH)
        self.same = self.one
        self.tied = nn.Linear(WIDTH, WIDTH)
        self.tied.weight = self.one.weight

    def forward(self, x: Tensor) -> Tensor:
        """Run."""
        x = self.one(self.one(x).tanh()).tanh()
        x = self.same(self.tied(x).tanh()).tanh()
        return F.linear(x, self.one.weight)


class Tied(nn.Module):
    """The head's weight is that of the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, WIDTH)
        self.middle = nn.Linear(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, 50)
        self.head.weight = self.words.weight

    def forward(self, x: Tensor) -> Tensor:
        """Run."""
        words = self.words((x * 9).long().abs() % 50)
        y: Tensor = self.head(self.middle(words))
        return y


class Penalised(nn.Module):
    """One weight's sizes are added, and another's linear is applied to it."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.last = nn.Linear(WIDTH, WIDTH)
        self.square = nn.Parameter(torch.randn(WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """Run."""
        y: Tensor = self.last(self.first(x).relu())
        y = y + F.linear(self.square, self.square)
        return y + self.first.weight.abs().sum()


class Given(nn.Module):
    """One weight and one bias are inputs, and not tensors of the module."""

    def __init__(self) -> None:
        super().__init__()
        self.own = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, weight: Tensor) -> Tensor:
        """Run."""
        x = self.own(F.linear(x, weight).tanh())
        return F.linear(x, self.own.weight + 1, weight[0])


class Doubling(nn.Linear):
    """A linear that the tracer does not look into, with its own forward."""

    def forward(self, input: Tensor) -> Tensor:
        """Run."""
        return 2 * super().forward(input)


def _tanh(module: nn.Module, args: tuple[Tensor]) -> Tensor:
    """A hook that changes what a linear is applied to."""
    return args[0].tanh()


def _double(module: nn.Module, args: tuple[Tensor], result: Tensor) -> Tensor:
    """A hook that changes a linear's result."""
    return result * 2


class Unlike(nn.Module):
    """Calls of linears that compute something else."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.doubling = Doubling(WIDTH, WIDTH)
        self.before = nn.Linear(WIDTH, WIDTH)
        self.before.register_forward_pre_hook(_tanh)
        self.after = nn.Linear(WIDTH, WIDTH)
        self.after.register_forward_hook(_double)

    def forward(self, x: Tensor) -> Tensor:
        """Run."""
        y: Tensor = self.after(self.before(self.doubling(self.first(x))))
        return y


class Views(nn.Module):
    """Weights that are views of one tensor, and others of one that is used."""

    def __init__(self) -> None:
        super().__init__()
        both, table = torch.randn(2 * WIDTH, WIDTH), torch.randn(WIDTH, WIDTH)
        self.upper, self.lower, self.tied = [
            nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3)
        ]
        self.upper.weight = nn.Parameter(both[:WIDTH])
        self.lower.weight = nn.Parameter(both[WIDTH:])
        self.tied.weight = nn.Parameter(table)
        self.turned = nn.Parameter(table.t())
        self.one = nn.Parameter(torch.randn(WIDTH, WIDTH))
        self.same = nn.Parameter(self.one.detach().t())

    def forward(self, x: Tensor) -> Tensor:
        """Run."""
        x = self.tied(self.upper(x) + self.lower(x)) * self.turned
        return x * self.one + self.same


class Leaf(nn.Module):
    """torch.nn's attention holds linears that the graph does not call."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.layer = nn.TransformerEncoderLayer(WIDTH, 2, 32, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        """Run."""
        y: Tensor = self.layer(self.first(x).unsqueeze(0))
        return y


CASES: Final[dict[str, Case]] = {
    "chain": Case(chain, "_0 _3", {}),
    "functional": Case(Functional, "linear linear_1", {}),
    "shared": Case(Shared, "one one_1 tied one_2 linear", {}),
    "tied to an embedding": Case(
        Tied, "middle", {"head": "its weight is also the embedding's"}
    ),
    "weight used elsewhere": Case(
        Penalised,
        "last",
        {
            "first": "something else uses its weight, too",
            "linear": "its weight is its input, too",
        },
    ),
    "weight given": Case(
        Given,
        "",
        {
            "linear": "its weight is an input",
            "own": "something else uses its weight, too",
            "linear_1": "its weight is a value of the program",
        },
        2,
    ),
    "own forward, hooks": Case(
        Unlike,
        "first",
        {
            "doubling": "its type is not nn.Linear, and has its own forward",
            "before": "it has a hook, which must run",
            "after": "it has a hook, which must run",
        },
    ),
    "views": Case(
        Views,
        "upper lower",
        {"tied": "something else uses the memory of its weight, too"},
    ),
    "leaf": Case(
        Leaf, "first", {"layer": "the graph does not call the linears in it"}
    ),
}


def _rows(factors: Tensor) -> nn.Linear:
    """A linear whose channels are multiplied by some factors."""
    linear = nn.Linear(WIDTH, WIDTH)
    with torch.no_grad():
        linear.weight *= factors[:, None]
    return linear


def ranges() -> nn.Linear:
    """Each channel is of another size."""
    return _rows(torch.logspace(-3, 3, WIDTH))


def zeros() -> nn.Linear:
    """Two channels have no weight but zero."""
    return _rows((torch.arange(WIDTH) % 8 != 3).float())


def one_sign() -> nn.Linear:
    """In half the channels the largest weight is negative."""
    linear = nn.Linear(WIDTH, WIDTH)
    with torch.no_grad():
        linear.weight.abs_()
        linear.weight[::2] *= -1
    return linear


def halfway() -> nn.Linear:
    """All weights but one of a channel are off by half a scale."""
    whole = torch.randint(-127, 127, (64, 64)) + 0.5
    whole[:, 0] = 127
    linear = nn.Linear(64, 64, bias=False)
    with torch.no_grad():
        linear.weight.copy_(whole / 1270)
    return linear


def large_bias() -> nn.Linear:
    """Next to the bias, float32 cannot hold what the weights contribute."""
    linear = nn.Linear(WIDTH, WIDTH)
    with torch.no_grad():
        linear.bias.copy_(torch.randn(WIDTH) * 1e8)
    return linear


def wide() -> nn.Linear:
    """float16 with small weights, and sums beyond it before the scale."""
    return _rows(torch.logspace(-4, 0, WIDTH)).half()


ALONE: Final[dict[str, Callable[[], nn.Linear]]] = {
    "plain": lambda: nn.Linear(WIDTH, WIDTH),
    "no bias": lambda: nn.Linear(WIDTH, WIDTH, bias=False),
    "one output": lambda: nn.Linear(WIDTH, 1),
    "ranges": ranges,
    "zeros": zeros,
    "one sign": one_sign,
    "halfway": halfway,
    "large bias": large_bias,
    "float64": lambda: nn.Linear(WIDTH, WIDTH).double(),
    "float16": wide,
}
"""Linears that are a whole network, by what is special about them."""
