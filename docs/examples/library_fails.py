"""Using fx: code that cannot be traced, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

import fx
from fx.experimental.proxy_tensor import make_fx


def branches(x: torch.Tensor) -> torch.Tensor:
    """Which way it goes depends on the data."""
    if x.sum() > 0:
        return torch.relu(x)
    return -x


def chooses(x: torch.Tensor) -> torch.Tensor:
    """The same, as an operation on tensors."""
    return torch.where(x.sum() > 0, torch.relu(x), -x)


def loops(x: torch.Tensor) -> torch.Tensor:
    """How often it goes round depends on a shape."""
    total = x[0]
    for row in range(1, len(x)):
        total = total + x[row]
    return total


def message(function: Callable[[torch.Tensor], torch.Tensor]) -> str:
    """What the error of a trace says, with the name of this file alone."""
    try:
        fx.symbolic_trace(function)
    except (fx.TraceError, RuntimeError) as error:
        here = Path(__file__)
        return str(error).replace(str(here), here.name)
    return "traced"


def main() -> None:
    """Two errors, and a way round each."""
    print(message(branches))
    print()
    print(message(loops))
    print()
    print("with torch.where:", message(chooses))
    rows = make_fx(loops)(torch.ones(3, 2)).graph.nodes
    print("captured by make_fx, for three rows:", len(rows), "nodes")
