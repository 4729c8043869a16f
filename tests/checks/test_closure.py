"""A stage's file does not come to need more reading than it did."""

from __future__ import annotations

import pytest

from tests.checks.closure import Reading, closure_problems
from tests.checks.sources import library, snippet

A_FILE = "import math\n" + "x = 1\n" * 9

SOURCES = [
    snippet("from .b import x\nfrom . import room\n", "fx/a.py"),
    snippet("from .room.c import x\n" + A_FILE, "fx/b.py"),
    snippet("'''Docstring.'''\n", "fx/room/__init__.py"),
    snippet("from .. import a\n# comment\n" + A_FILE, "fx/room/c.py"),
    snippet(A_FILE, "fx/room/d.py"),
]


def test_nothing_takes_more_reading_than_it_did() -> None:
    assert list(closure_problems(library())) == []


@pytest.mark.parametrize(
    ("most", "goal", "complaint"),
    [
        (23, 0, "fx/a.py: with all that it imports, 24 lines (max 23)"),
        (24, 0, ""),
        (26, 0, "fx/a.py: 24 lines; lower its limit of 26"),
        (26, 24, ""),
    ],
)
def test_a_limit_that_is_wrong_is_seen(
    most: int, goal: int, complaint: str
) -> None:
    found = [*closure_problems(SOURCES, {"fx/a.py": Reading(most, goal)})]
    assert len(found) == bool(complaint)
    assert all(one.startswith(complaint) for one in found)
