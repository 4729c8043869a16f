"""A scatter operator that puts a row to where it is already."""

from __future__ import annotations

from docs.machinery.svg import Canvas, Tone


def draw() -> Canvas:
    """Left the graph of a row plus one, right the same in place."""
    canvas = Canvas(
        "Left: select takes row 0 out of a, add makes a new row of it, "
        "select_scatter puts that into a copy of a. Right: add writes into "
        "row 0 of a itself, and nothing is left for select_scatter to do",
        250,
    )
    canvas.word(100, 14, "functional", tone="quiet")
    canvas.word(306, 14, "in place", tone="quiet")
    _rows(canvas, 8, 34, "a")
    canvas.arrow(68, 45, 122, 45)
    canvas.word(95, 33, "select", tone="quiet")
    canvas.box(126, 34, 56, 22, "row")
    canvas.arrow(154, 60, 154, 102)
    canvas.word(160, 80, "add 1", anchor="start", tone="quiet")
    canvas.box(126, 106, 56, 22, "new", tone="new")
    canvas.arrow(150, 132, 68, 186)
    canvas.word(126, 166, "select_scatter", anchor="start", tone="quiet")
    canvas.arrow(36, 104, 36, 172)
    _rows(canvas, 8, 176, "new")
    _rows(canvas, 278, 34, "a")
    canvas.arrow(306, 104, 306, 172)
    canvas.word(312, 138, "add_ 1", anchor="start", tone="quiet")
    _rows(canvas, 278, 176, "new")
    return canvas


def _rows(canvas: Canvas, x: float, y: float, first: str) -> None:
    """A tensor of three rows, the first of them old or new."""
    tone: Tone = "new" if first == "new" else "plain"
    canvas.box(x, y, 56, 22, "row 0" if first == "a" else first, tone=tone)
    canvas.box(x, y + 22, 56, 22, "row 1")
    canvas.box(x, y + 44, 56, 22, "row 2")
