"""Every parity program sees the same in torch.fx and in fx, or a known row."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch.fx

import fx
from tests.parity import programs as _programs  # registers them
from tests.parity.harness import PROGRAMS, SAME, Program, plain

assert _programs is not None


def _marks(program: Program) -> Iterator[pytest.MarkDecorator]:
    """What pytest is told about a program."""
    if program.newest:
        yield pytest.mark.newest


@pytest.mark.parametrize(
    "program",
    [pytest.param(p, id=p.name, marks=[*_marks(p)]) for p in PROGRAMS.values()],
)
@pytest.mark.filterwarnings("ignore")
def test_program(program: Program) -> None:
    """Equal notes, or exactly the difference that is written down."""
    ours = program.seen_by(fx)
    theirs = program.seen_by(torch.fx)
    if program.ours is SAME:
        file, _, function = program.name.partition(".")
        where = f"tests/parity/programs/{file}.py, {function}"
        assert ours == theirs, f"the program is in {where}"
    else:
        assert ours == plain(program.ours)
        assert theirs != ours, "the difference is gone: drop its row"
