"""A value that leaves a match and comes back into it."""

from __future__ import annotations

from docs.machinery.svg import Canvas


def draw() -> Canvas:
    """Two nodes of a match, and one that is between them."""
    canvas = Canvas(
        "relu and neg are a match; mul reads relu and is read by neg, so that "
        "it stands behind the match and before it",
        196,
    )
    canvas.box(20, 6, 150, 184, tone="new")
    canvas.box(60, 18, 70, 32, "relu", tone="strong")
    canvas.box(60, 146, 70, 32, "neg", tone="strong")
    canvas.box(240, 82, 70, 32, "mul")
    canvas.curve(132, 38, 262, 79, (250, 42))
    canvas.curve(262, 117, 133, 158, (250, 154))
    canvas.word(226, 30, "out", anchor="middle")
    canvas.word(226, 168, "and back", anchor="middle")
    canvas.word(95, 98, "one piece?", tone="new")
    return canvas
