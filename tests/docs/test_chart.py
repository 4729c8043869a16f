"""The chart of the benchmarks: a bar for each recorded operation."""

from __future__ import annotations

import math
import re
import tomllib

from docs.machinery.chart import RECORDED, drawn
from tests.docs.test_directives import drawn_with


def bars(svg: str) -> list[float]:
    return [
        float(width) for width in re.findall(r'<rect[^>]*? width="(.*?)"', svg)
    ]


def test_a_bar_grows_by_the_logarithm_of_its_largest_size() -> None:
    rows = {"a": {10: 4.0, 1000: 16.0}, "b": {10: 4.0}, "c": {10: 0.5}}
    canvas = drawn(rows)
    longest, half, none = bars(canvas.svg())
    assert math.isclose(longest, 2 * half, rel_tol=0.01)
    assert none <= 2
    assert "a: 16.0, b: 4.0, c: 0.5" in canvas.title


def test_every_operation_has_a_row_and_the_first_and_last_a_bar() -> None:
    recorded = tomllib.loads(RECORDED.read_text(encoding="utf-8"))["ratio"]
    html, errors = drawn_with("/// speed\nWhat it says.\n///\n", "speed.md")
    assert not errors
    single = [name for name in recorded if name.startswith("each-")]
    assert len(recorded) - len(single) > html.count("<rect") == 8
    assert len(single) > 20
    assert html.count('data-label="operation"') == len(recorded)
