"""From nodes to a function that runs: what is made of what."""

from __future__ import annotations

from docs.machinery.svg import Canvas


def draw() -> Canvas:
    """Nodes, the emitter's four results, the text, the function."""
    canvas = Canvas(
        "The emitter turns nodes into parameters, a body, globals and the "
        "origins of lines; together they are a PythonCode, which compile and "
        "exec turn into forward",
        286,
    )
    canvas.box(120, 6, 120, 32, "graph.nodes")
    parts = ("parameters", "pieces", "globals", "origins")
    for number, part in enumerate(parts):
        left = 4 + 90 * number
        canvas.arrow(180, 40, left + 41, 76)
        canvas.box(left, 78, 82, 32, part, tone="strong")
    canvas.word(300, 52, "Emitter.run", tone="quiet")
    canvas.box(2, 140, 356, 62, tone="quiet")
    canvas.box(10, 148, 160, 28)
    below = (("def line", 0), ("body", 1), ("globals", 2), ("line map", 3))
    for text, number in below:
        left = 4 + 90 * number
        canvas.arrow(left + 41, 112, left + 41, 146)
        canvas.word(left + 41, 162, text)
    canvas.word(90, 190, "src", tone="quiet", code=True)
    canvas.word(300, 190, "PythonCode", tone="quiet")
    canvas.arrow(180, 204, 180, 240, tone="strong")
    canvas.word(190, 222, "compile, exec", anchor="start", tone="quiet")
    canvas.box(100, 242, 160, 34, "forward(self, x)", tone="new")
    return canvas
