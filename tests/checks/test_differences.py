"""docs/differences.md and the parity programs name the same differences."""

from __future__ import annotations

import pytest

from tests.checks.differences import (
    PAGE,
    rows_of_page,
    rows_of_programs,
    with_table,
)


def test_each_row_has_a_program_and_each_program_its_row() -> None:
    rows = rows_of_page(PAGE.read_text())
    assert len(rows) == len(set(rows)), "a row stands there twice"
    assert set(rows) == rows_of_programs()


def test_the_table_of_effects_is_what_the_tests_check() -> None:
    text = PAGE.read_text()
    assert text == with_table(text), (
        "out of date: python -m tests.checks.differences --write"
    )


@pytest.mark.parametrize("extra", ["| `no-such-row` | a | b |\n"])
def test_a_row_that_nothing_shows_is_found(extra: str) -> None:
    assert "no-such-row" in rows_of_page(PAGE.read_text() + "\n" + extra)
    assert "no-such-row" not in rows_of_programs()
