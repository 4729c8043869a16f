"""Random programs that read, view and write memory, and what comes out."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch

import fx
from fx.use_def.values import AnyValue

OPERATIONS = ("relu", "neg", "add_", "mul_", "view", "sum", "rand", "flat")

Recipe: TypeAlias = list[tuple[int, int, int]]
"""For each call, which operation it is and which values it takes."""


def flat(x: torch.Tensor) -> torch.Tensor:
    """A user's function, of which nothing is known; it returns a view."""
    return x.view(-1)


def recipe_of(drawn: random.Random, longest: int = 9) -> Recipe:
    """A recipe of some calls."""
    return [
        (drawn.randrange(8), drawn.randrange(6), drawn.randrange(10))
        for _ in range(drawn.randint(2, longest))
    ]


def program(recipe: Recipe, returned: Sequence[int] | None = None) -> fx.Graph:
    """Calls that read, view and write the values before them.

    Args:
        recipe: the calls.
        returned: the places of the values that are returned; all if None.
    """
    graph = fx.Graph()
    # Known to be new memory, so that writes are not taken for unknown ones.
    values = [graph.call_function(torch.clone, (graph.placeholder("x"),))]
    for number, one, other in recipe:
        name = OPERATIONS[number % len(OPERATIONS)]
        a, b = values[-1 - one % len(values)], values[other % len(values)]
        if name == "view":
            new = graph.call_method("view", (a, -1))
        elif name == "flat":
            new = graph.call_function(flat, (a,))
        elif name == "rand":
            rand_like = torch.ops.aten.rand_like.default
            new = graph.call_function(rand_like, (a,))
        elif name.endswith("_"):
            new = graph.call_method(name, (a, b))
        elif name == "sum":
            new = graph.call_function(torch.add, (a, b))
        else:
            new = graph.call_function(getattr(torch, name), (a,))
        values.append(new)
    if returned is not None:
        values = [values[place % len(values)] for place in returned]
    graph.output(tuple(values))
    return graph


def outcome(run: Callable[..., AnyValue]) -> AnyValue:
    """What a program returns and writes, and which of that shares memory."""
    x = torch.linspace(-1, 1, 4)
    torch.manual_seed(0)
    found = run(x)
    places = [each.data_ptr() for each in (x, *found)]
    return (
        [[f"{number:.6g}" for number in each.tolist()] for each in (x, *found)],
        [places.index(place) for place in places],
    )
