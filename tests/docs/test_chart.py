"""The chart of the benchmarks: a bar for each recorded operation."""

from __future__ import annotations

import tomllib

from docs.machinery.chart import RECORDED
from tests.docs.test_directives import drawn_with


def test_every_operation_has_a_row_and_the_first_and_last_a_bar() -> None:
    recorded = tomllib.loads(RECORDED.read_text(encoding="utf-8"))["ratio"]
    html, errors = drawn_with("/// speed\nWhat it says.\n///\n", "speed.md")
    assert not errors
    single = [name for name in recorded if name.startswith("each-")]
    assert len(recorded) - len(single) > html.count("<rect") == 8
    assert len(single) > 20
    assert html.count('data-label="operation"') == len(recorded)
