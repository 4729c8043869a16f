"""Where Residual's values are in memory, before and after reinplacing."""

from __future__ import annotations

from docs.machinery.svg import Canvas

_LINES = ("addmm", "add", "relu", "output")
_BEFORE = ((0, 1, "A"), (1, 2, "B"), (2, 3, "C"))


def draw() -> Canvas:
    """Four lines; left three memories, right one."""
    canvas = Canvas(
        "Before: addmm, add and relu each have a memory of their own, and "
        "each is needed until the next line. After: one memory, which addmm "
        "makes, add and relu write, and output reads",
        238,
    )
    canvas.word(164, 14, "before: three memories", tone="quiet")
    canvas.word(302, 14, "after: one", tone="quiet")
    for number, name in enumerate(_LINES):
        canvas.word(6, 50 + 40 * number, name, anchor="start", code=True)
    for column, (first, last, name) in enumerate(_BEFORE):
        top = 38 + 40 * first
        canvas.box(
            100 + 52 * column,
            top,
            24,
            24 + 40 * (last - first),
            name,
            tone="strong",
        )
    canvas.box(270, 38, 64, 144, tone="new")
    for number, deed in enumerate(("made", "written", "written", "read")):
        canvas.word(302, 50 + 40 * number, deed, tone="new")
    canvas.word(164, 214, "two alive at once", tone="quiet")
    canvas.word(302, 214, "one alive", tone="quiet")
    return canvas
