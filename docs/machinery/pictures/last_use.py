"""How long each value of Residual is needed."""

from __future__ import annotations

from docs.machinery.svg import Canvas

_LINES = ("x", "linear(x)", "linear + x", "relu(add)", "return relu")
_NEEDED = (("x", 0, 2), ("linear", 1, 2), ("add", 2, 3), ("relu", 3, 4))


def draw() -> Canvas:
    """Five lines; a bar for each value, from its definition to its last use."""
    canvas = Canvas(
        "x is needed from the first line to linear + x, linear from its line "
        "to the same one, add until relu, relu until the return",
        206,
    )
    for number, line in enumerate(_LINES):
        canvas.word(6, 46 + 36 * number, line, anchor="start", code=True)
    for column, (name, first, last) in enumerate(_NEEDED):
        middle = 140 + 58 * column
        canvas.word(middle, 14, name, tone="quiet")
        top = 34 + 36 * first
        canvas.box(middle - 7, top, 14, 24 + 36 * (last - first), tone="strong")
        canvas.word(
            middle + 11, 46 + 36 * last, "last", anchor="start", tone="new"
        )
    return canvas
