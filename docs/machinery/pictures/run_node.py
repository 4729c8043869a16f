"""Who calls whom while a graph is run node by node."""

from __future__ import annotations

from docs.machinery.svg import Canvas

_METHODS = (
    "placeholder",
    "get_attr",
    "call_function",
    "call_method",
    "call_module",
    "output",
)


def draw() -> Canvas:
    """Left the loop and fetching, right one method for each opcode."""
    canvas = Canvas(
        "run calls run_node for each node; run_node fetches the values of "
        "the arguments from env and calls the method of the node's opcode",
        282,
    )
    canvas.box(8, 10, 124, 32, "run")
    canvas.arrow(70, 44, 70, 77, tone="strong")
    canvas.word(80, 60, "each node", anchor="start", tone="quiet")
    canvas.box(8, 80, 124, 32, "run_node", tone="strong")
    canvas.arrow(70, 114, 70, 151)
    canvas.word(80, 132, "first", anchor="start", tone="quiet")
    canvas.box(8, 154, 124, 44, "fetch the values", "of its arguments")
    canvas.arrow(70, 236, 70, 201)
    canvas.box(8, 238, 124, 32, "env", tone="quiet")
    canvas.word(80, 219, "node → value", anchor="start", tone="quiet")
    for number, name in enumerate(_METHODS):
        y = 10 + 45.6 * number
        canvas.box(226, y, 126, 32, name)
        canvas.arrow(134, 96, 223, y + 16, tone="strong")
    canvas.word(170, 40, "then", tone="quiet")
    return canvas
