"""What the benchmarks measure on: modules whose traces have `size` nodes."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Mixed(nn.Module):
    """Functions, operators, methods and parameters, in turn.

    There are two parameters, read again and again: looking one up takes
    torch.fx time that grows with their number, which is another matter.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.steps = size // 8
        self.scale = nn.Parameter(torch.full((4,), 0.5))
        self.shift = nn.Parameter(torch.full((4,), 0.25))

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(self.steps):
            y = torch.relu(x)
            z = y * self.scale
            z = z.clamp(max=8.0)
            y = torch.add(z, y, alpha=2)
            z = 1.5 - y
            z = torch.tanh(z)
            y = z.mul(y)
            x = y + self.shift
        return x


class Functions(nn.Module):
    """Functions of torch alone, of one tensor or two."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.steps = size // 4

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(self.steps):
            y = torch.relu(x)
            z = torch.tanh(y)
            y = torch.add(y, z)
            x = torch.mul(y, 0.5)
        return x


class Operators(nn.Module):
    """Python's operators alone, between tensors and with numbers."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.steps = size // 4

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(self.steps):
            y = x + 1.0
            z = -y
            y = z * x
            x = 0.5 - y
        return x


class Block(nn.Module):
    """Two leaves: a Linear and a ReLU."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(1, 1)
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.relu(self.linear(x))
        return y


class Tree(nn.Module):
    """A binary tree of modules, one Block at each of its leaves."""

    def __init__(self, blocks: int) -> None:
        super().__init__()
        half = blocks // 2
        self.left = Tree(half) if half > 1 else Block()
        self.right = Tree(blocks - half) if blocks - half > 1 else Block()

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.right(self.left(x))
        return y


class Nested(nn.Module):
    """A Tree of at most 500 Blocks, run as often as it takes.

    Ten thousand modules would be a hundred megabytes, and where they lie in
    memory would decide.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.times = max(size // 1_000, 1)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.tree = Tree(size // self.times // 2)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(self.times):
            x = self.tree(x)
        return x


class HalfDead(nn.Module):
    """A chain in which every other node is for nothing.

    The dead ones hang on one another in pairs: the second of a pair is dead
    once the first is gone.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.steps = size // 4

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(self.steps):
            y = torch.relu(x)
            torch.tanh(y * 2.0)
            x = y + 1.0
        return x


class Matches(nn.Module):
    """Four nodes a step, two of which are what `pattern` looks for."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.steps = size // 4

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(self.steps):
            y = torch.relu(x) + 1.0
            x = torch.tanh(y) * 2.0
        return x


def pattern(x: Tensor) -> Tensor:
    """What is sought in Matches."""
    return torch.relu(x) + 1.0


def absent(x: Tensor) -> Tensor:
    """What is not to be found in Matches, though both its parts are."""
    return torch.tanh(x) + 1.0


def replacement(x: Tensor) -> Tensor:
    """What is put in its place."""
    return torch.sigmoid(x)


class Identity(nn.Module):
    """Nothing at all: calling it is all that it costs."""

    def forward(self, x: Tensor) -> Tensor:
        return x
