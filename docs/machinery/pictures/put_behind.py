"""A node put behind another: before, with all uses, with all but its own."""

from __future__ import annotations

from docs.machinery.svg import Canvas

_LEFTS = (6, 126, 246)
_HEADS = (
    ("neg is put", "behind linear"),
    ("all uses of", "linear go to neg"),
    ("all but those", "of neg itself"),
)


def draw() -> Canvas:
    """Three columns of linear, neg and add; arrows go to the reader."""
    canvas = Canvas(
        "linear is read by neg and by add. If all its uses go to neg, neg "
        "reads itself and nobody reads linear. If neg's own use is left "
        "alone, linear is read by neg, and neg by add",
        216,
    )
    for left, head in zip(_LEFTS, _HEADS, strict=True):
        for number, line in enumerate(head):
            canvas.word(left + 54, 12 + 16 * number, line, tone="quiet")
        for number, name in enumerate(("linear", "neg", "add")):
            canvas.box(left + 30, 50 + 60 * number, 56, 32, name)
    first, second, third = (left + 58 for left in _LEFTS)
    canvas.arrow(first, 84, first, 108, tone="new")
    canvas.curve(first - 30, 66, first - 30, 186, (first - 62, 126))
    canvas.curve(second + 30, 116, second + 30, 136, (second + 62, 126))
    canvas.word(second + 42, 152, "loop", anchor="start", tone="gone")
    canvas.arrow(second, 144, second, 168, tone="strong")
    canvas.arrow(third, 84, third, 108, tone="strong")
    canvas.arrow(third, 144, third, 168, tone="strong")
    return canvas
