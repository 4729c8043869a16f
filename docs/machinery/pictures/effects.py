"""Who is asked, in turn, what a call_function node does."""

from __future__ import annotations

from docs.machinery.svg import Canvas

_ASKED = (
    ("the registry", "has_side_effect(fn)", "impure"),
    ("the tables", "len, operator.add, …", "pure or impure"),
    ("its schemas", "add(Tensor(a!) self, …)", "impure if they write"),
    ("its tags", "nondeterministic_seeded", "impure if it draws"),
    ("its signature", "relu(input, inplace)", "impure if the flag is set"),
)


def draw() -> Canvas:
    """A ladder of boxes; each that knows an answer gives it, to the right."""
    height = 52
    canvas = Canvas(
        "A target is looked for in the registry, then in the tables, then "
        "its schemas and tags are read, then its signature; what none of "
        "them knows is unknown",
        height * len(_ASKED) + 44,
    )
    for number, (title, example, answer) in enumerate(_ASKED):
        y = 4 + height * number
        canvas.box(4, y, 166, 38, title, example)
        canvas.arrow(170, y + 19, 188, y + 19, tone="strong")
        canvas.word(193, y + 19, answer, anchor="start")
        canvas.arrow(87, y + 38, 87, y + height, tone="quiet")
    last = 4 + height * len(_ASKED)
    canvas.box(4, last, 166, 32, "unknown", tone="quiet")
    return canvas
