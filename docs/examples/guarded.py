"""A guard of the example's model, from the question to a refused call."""

from __future__ import annotations

import itertools

import torch

import fx
from docs.examples.own_model import Encoder
from docs.machinery.film import Arc, Choices, Row

COLUMNS = (2, 4)
"""Of two calls: what the trace had, and another number."""


def choices() -> Choices:
    """The question, its answer, the guard, and two calls."""
    example = torch.randint(100, (2, 5, 2)), torch.ones(2, 5)
    gm = fx.trace(Encoder(), *example)
    (guard,) = [one for one in gm.guards if "size(2)" in one.expression]
    asked = guard.line.rpartition("in the expression: ")[2]
    rows = [
        Row("forward asks", asked),
        Row("trace answers", str(example[0].shape[2])),
        Row("guard", guard.expression),
    ]
    for columns in COLUMNS:
        said = "runs"
        try:
            gm(torch.randint(100, (3, 7, columns)), torch.ones(3, 7))
        except fx.GuardError as error:
            said = type(error).__name__
        rows.append(Row(f"ids (3, 7, {columns})", said))
    names = [row.name for row in rows]
    pairs = [*itertools.pairwise(names)]
    pairs += [("guard", name) for name in names[3:]]
    made = Choices("Which guard?")
    arcs = [Arc(*pair) for pair in pairs]
    made.option("columns").shot("What a guard is", rows, arcs)
    return made
