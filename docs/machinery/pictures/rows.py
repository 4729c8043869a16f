"""A graph as a pickle sees it, and as a table."""

from __future__ import annotations

from docs.machinery.svg import Canvas

_ROWS = (
    ("x", "placeholder"),
    ("linear", "linear(#0)"),
    ("add", "#1 + #0"),
    ("relu", "relu(#2)"),
    ("output", "return #3"),
)


def draw() -> Canvas:
    """Left, nodes that lead to one another; right, rows that do not."""
    canvas = Canvas(
        "Left five nodes, each leading to the ones that it reads. Right five "
        "rows with numbers, in which an argument is the number of a row",
        244,
    )
    canvas.word(88, 12, "as objects", tone="quiet")
    canvas.word(262, 12, "as rows", tone="quiet")
    for number, (name, text) in enumerate(_ROWS):
        y = 26 + 44 * number
        canvas.box(54, y, 72, 32, name)
        canvas.word(188, y + 16, f"#{number}", tone="quiet", code=True)
        canvas.box(208, y, 132, 32, text, tone="strong")
        if number:
            canvas.arrow(90, y - 1, 90, y - 11)
    canvas.curve(52, 130, 52, 42, (8, 86))
    return canvas
