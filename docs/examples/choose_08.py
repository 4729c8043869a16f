"""A choice for stage 08: what shares memory with "a".

It does without `from __future__ import annotations`, because generated code
repeats the annotations.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from docs.machinery.film import Choices
from fx.experimental.proxy_tensor import make_fx
from fx.passes.reinplace import reinplace, reinplace_report


def fresh(x: Tensor) -> Tensor:
    """Nobody else has a."""
    a = x.exp()
    return a.add(1)


def given(a: Tensor) -> Tensor:
    """The caller has a."""
    return a.add(1)


def its_own_view(x: Tensor) -> Tensor:
    """The other argument is a view of a."""
    a = x.exp()
    return a.mul(a.t())


def used_later(x: Tensor) -> Tensor:
    """A view of a is used after the call."""
    a = x.exp()
    row = a[0]
    return a.add(1).mul(row)


def another_type(x: Tensor) -> Tensor:
    """The result does not fit where a is."""
    a = x.exp()
    return a.gt(1)


def scattered(x: Tensor) -> Tensor:
    """The result is put back where the view of a was."""
    a = x.exp()
    return a.select_scatter(a[0].mul(2), 0, 0)


PROGRAMS: dict[str, Callable[[Tensor], Tensor]] = {
    "nothing": fresh,
    "an input of the program": given,
    "the other argument, a view": its_own_view,
    "a view that is used later": used_later,
    "nothing, but the result is bool": another_type,
    "the view that is scattered back": scattered,
}


def choices() -> Choices:
    """The verdict of the pass on each program, and the graph it makes."""
    asked = Choices("What shares memory with “a”?")
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    for label, program in PROGRAMS.items():
        film = asked.option(label)
        gm = make_fx(program)(x)
        film.graph("Captured.", gm.graph, code=gm.code)
        report = reinplace_report(gm, x)
        notes = {
            verdict.node: f"({verdict.rule}) {verdict.reason}"
            for verdict in (*report.done, *report.kept)
        }
        reinplace(gm, x)
        done = [verdict.node for verdict in report.done]
        kept = [f"{v.node} by rule {v.rule}" for v in report.kept]
        parts = [f"Done in place: {', '.join(done)}."] if done else []
        parts += [f"Refused: {', '.join(kept)}."] if kept else []
        film.graph(" ".join(parts), gm.graph, notes=notes, code=gm.code)
    return asked
