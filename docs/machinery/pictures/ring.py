"""A ring of three links and the sentinel."""

from __future__ import annotations

from docs.machinery.svg import Canvas, Tone


def draw() -> Canvas:
    """Four boxes in a row; the ends meet in the sentinel."""
    canvas = Canvas(
        "The sentinel, a, b and c in a ring: each leads to the next and to "
        "the one before, and c leads back to the sentinel",
        150,
    )
    names = ("sentinel", "a", "b", "c")
    lefts = (4, 114, 204, 294)
    widths = (72, 54, 54, 54)
    for name, left, width in zip(names, lefts, widths, strict=True):
        tone: Tone = "quiet" if name == "sentinel" else "plain"
        canvas.box(left, 54, width, 36, name, tone=tone)
    for here, width, there in zip(lefts, widths, lefts[1:], strict=False):
        canvas.arrow(here + width + 3, 65, there - 3, 65, tone="strong")
        canvas.arrow(there - 3, 80, here + width + 3, 80)
    canvas.curve(321, 52, 40, 52, (180, -22), tone="strong")
    canvas.curve(40, 92, 321, 92, (180, 166))
    canvas.word(180, 30, "_next", tone="strong", code=True)
    canvas.word(180, 116, "_prev", code=True)
    return canvas
