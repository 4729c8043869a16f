"""The recorded benchmarks as a chart: `/// speed`.

All is read from files: the ratios from tests/benchmarks/recorded.toml, what
each operation is from the docstring of its benchmark.  Nothing is measured.
"""

from __future__ import annotations

import ast
import math
import textwrap
import tomllib
import xml.etree.ElementTree as etree
from statistics import median
from typing import Final

from docs.machinery.directives import Kind
from docs.machinery.scene import Block, Scene, element
from docs.machinery.source import ROOT, UnknownName, find
from docs.machinery.svg import WIDTH, Canvas

RECORDED = ROOT / "tests" / "benchmarks" / "recorded.toml"
LEFT: Final = 12
ROOM: Final = 60
"""What is left free behind a bar for its number."""

STEPS: Final = (1, 2, 5, 10, 20)
"""Where the scale has lines; it grows by the logarithm."""


BARS: Final = 8
"""Rows of the chart, spread evenly over all; the table has each."""


def _speed(scene: Scene) -> etree.Element:
    """The chart, the date, and all figures folded."""
    table = tomllib.loads(RECORDED.read_text(encoding="utf-8"))
    rows = {
        _caption(scene, name): {
            int(size): median(map(float, runs)) for size, runs in sizes.items()
        }
        for name, sizes in table["ratio"].items()
    }
    order = sorted(rows, key=lambda caption: -_largest(rows[caption])[1])
    single = {
        _caption(scene, name)
        for name in table["ratio"]
        if name.startswith("each-")
    }
    box = element(scene.parent, "div", css="fx-figure fx-chart")
    long = {name: rows[name] for name in order if name not in single}
    last = len(long) - 1
    spread = {[*long][at * last // (BARS - 1)] for at in range(BARS)}
    few = {name: ratios for name, ratios in long.items() if name in spread}
    scene.raw(box, drawn(few).svg())
    said = f"Recorded on {table['date']}, with {table['releases']}."
    element(box, "p", said, css="fx-where")
    _folded(box, "All figures", long)
    if single:
        rest = {name: rows[name] for name in order if name in single}
        _folded(box, "Single operations", rest)
    return element(box, "div", css="fx-caption")


def _folded(
    parent: etree.Element, title: str, rows: dict[str, dict[int, float]]
) -> None:
    """A table that opens by its title."""
    folded = element(parent, "details")
    element(folded, "summary", title)
    _table(folded, rows)


FILES: Final = ("operations", "networks", "passes", "each", "examples")
"""The files of tests/benchmarks that have benchmarks."""


def _caption(scene: Scene, name: str) -> str:
    """What a benchmark measures: the first line of its docstring."""
    base = name.removesuffix("-alone")
    problem: UnknownName | None = None
    for file in FILES:
        dotted = f"tests.benchmarks.{file}.{base.replace('-', '_')}"
        try:
            place = find(dotted)
        except UnknownName as error:
            problem = problem or error
        else:
            break
    else:
        raise scene.error(problem)
    text = place.module.text(place.unit.first, place.unit.last)
    (made,) = ast.parse(text).body
    if not isinstance(made, ast.FunctionDef):
        raise scene.error(f"{dotted} is not a function")
    said = ast.get_docstring(made) or name
    first = said.partition("\n")[0].rstrip(".")
    return first if name == base else f"{first}, without compile()"


def _largest(sizes: dict[int, float]) -> tuple[int, float]:
    """The ratio at the largest size that was measured."""
    size = max(sizes)
    return size, sizes[size]


def drawn(rows: dict[str, dict[int, float]]) -> Canvas:
    """A bar for each operation.

    Args:
        rows: operation -> nodes -> torch.fx's time divided by fx's.
    """
    lines = {name: textwrap.wrap(name, 46) for name in rows}
    heights = {name: 16 * len(some) + 26 for name, some in lines.items()}
    height = sum(heights.values()) + 30
    best = max(_largest(sizes)[1] for sizes in rows.values())
    said = ", ".join(f"{n}: {_largest(s)[1]:.1f}" for n, s in rows.items())
    canvas = Canvas(f"How many times as fast fx is. {said}", height)
    scale = (WIDTH - LEFT - ROOM) / math.log(best)

    def place(ratio: float) -> float:
        return LEFT + scale * max(math.log(ratio), 0)

    for step in STEPS:
        if step <= best:
            canvas.line(place(step), 24, place(step), height)
            canvas.word(place(step), 10, f"{step}x", tone="quiet")
    top = 30.0
    for name, sizes in rows.items():
        for line in lines[name]:
            canvas.word(LEFT, top + 8, line, anchor="start")
            top += 16
        ratio = _largest(sizes)[1]
        width = max(place(ratio) - LEFT, 2)
        canvas.box(LEFT, top + 2, width, 12, tone="strong")
        canvas.word(LEFT + width + 6, top + 8, f"{ratio:.1f}", anchor="start")
        top += 26
    return canvas


def _table(parent: etree.Element, rows: dict[str, dict[int, float]]) -> None:
    """Every ratio, by size."""
    table = element(parent, "table", css="fx-cards", role="table")
    head = element(element(table, "thead"), "tr")
    for label in ("operation", "nodes: torch.fx / fx"):
        element(head, "th", label)
    body = element(table, "tbody")
    for name, sizes in rows.items():
        row = element(body, "tr", role="row")
        cell = element(row, "td", name, role="cell")
        cell.set("data-label", "operation")
        figures = "; ".join(f"{n:,}: {r:.2f}" for n, r in sizes.items())
        cell = element(row, "td", figures, role="cell")
        cell.set("data-label", "torch.fx / fx")


BLOCKS = {"speed": Block(Kind(False, {}, "prose"), _speed)}
