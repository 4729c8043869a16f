"""The use-def edges of Residual's graph."""

from __future__ import annotations

from docs.machinery.svg import Canvas

_ROWS = (
    ("x", "placeholder", "users: linear, add"),
    ("linear", "linear(x)", "users: add"),
    ("add", "linear + x", "users: relu"),
    ("relu", "relu(add)", "users: output"),
    ("output", "return relu", "users: none"),
)
_EDGES = ((0, 1), (0, 2), (1, 2), (2, 3), (3, 4))


def draw() -> Canvas:
    """Five rows; left, an arrow from each value to who uses it."""
    canvas = Canvas(
        "The five nodes of Residual: x is used by linear and add, linear by "
        "add, add by relu, relu by output",
        230,
    )
    for number, (name, text, users) in enumerate(_ROWS):
        y = 8 + 44 * number
        canvas.box(70, y, 150, 32, f"{name} = {text}" if number else name)
        canvas.word(230, y + 16, users, anchor="start", tone="quiet")
    for start, end in _EDGES:
        top, bottom = 24 + 44 * start + 5, 24 + 44 * end - 5
        bend = 70 - 44 * (end - start)
        middle = (top + bottom) / 2
        canvas.curve(68, top, 68, bottom, (bend, middle), tone="strong")
    return canvas
