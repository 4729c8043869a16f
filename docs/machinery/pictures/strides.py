"""Three tensors of one storage: each says where its elements are in it."""

from __future__ import annotations

from docs.machinery.svg import Canvas, Tone

_CELL = 28
_TENSORS = (
    ("a", "(2, 3)", 0, (2, 3), (3, 1), 8),
    ("a[1]", "(3,)", 3, (1, 3), (0, 1), 134),
    ("a.t()", "(3, 2)", 0, (3, 2), (1, 3), 260),
)
"""Name, shape, offset, rows and columns, their strides, left edge."""


def draw() -> Canvas:
    """The storage above, the tensors below; each element has its place."""
    canvas = Canvas(
        "A storage with places 0 to 5; a has rows 0 1 2 and 3 4 5; a[1] has "
        "3 4 5; a.t() has rows 0 3, 1 4 and 2 5",
        226,
    )
    canvas.word(8, 23, "storage", anchor="start")
    for place in range(6):
        _cell(canvas, 96 + _CELL * place, 8, place)
    for name, shape, offset, (rows, columns), steps, left in _TENSORS:
        canvas.arrow(180, 40, left + _CELL * columns / 2, 62, tone="strong")
        for row in range(rows):
            for column in range(columns):
                place = offset + row * steps[0] + column * steps[1]
                x, y = left + _CELL * column, 66 + _CELL * row
                _cell(canvas, x, y, place)
        strides = (steps[1],) if shape == "(3,)" else steps
        said = (name, shape, f"offset {offset}", f"strides {strides}")
        for number, word in enumerate(said):
            y = 164 + 17 * number
            canvas.word(left, y, word, anchor="start", code=not number)
    return canvas


def _cell(canvas: Canvas, x: float, y: float, place: int) -> None:
    """A number in memory; the second row of `a` stands out."""
    tone: Tone = "new" if place > 2 else "plain"
    canvas.box(x, y, _CELL, _CELL, str(place), tone=tone)
