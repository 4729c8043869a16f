"""What a part of the search is: its cases, and the faults it must find."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """One case that was tried, and what was wrong with it.

    `case` is enough to try it again: the text of a program, or a seed.
    `ours` and `theirs` say what fx and torch.fx did wrong, "" if nothing;
    `theirs` is None where torch.fx was not asked or has nothing alike.
    """

    case: str
    ours: str = ""
    theirs: str | None = None


@dataclass(frozen=True)
class Plant:
    """A fault to put into a copy of `fx/`, which the part must then find.

    `was` stands exactly once in `file` (`"fx/extra/effects/effects.py"`).
    """

    file: str
    was: str
    becomes: str
    why: str


@dataclass(frozen=True)
class Part:
    """One row of the table: `run(seed, cases)` tries about `cases` of them.

    `share` of them are tried by `make test`, `long` by `make fuzz`.
    """

    name: str
    compares: str
    run: Callable[[int, int], Iterator[Outcome]]
    share: int
    long: int
    plants: tuple[Plant, ...] = ()
