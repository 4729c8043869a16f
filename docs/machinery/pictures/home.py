"""The whole of fx in one drawing: a program becomes a graph and back."""

from __future__ import annotations

from docs.machinery.svg import Canvas


def draw() -> Canvas:
    """Program, proxies, graph, code, program; what is done at each arrow."""
    canvas = Canvas(
        "A module is traced with proxies into a graph; passes edit the graph; "
        "codegen writes it as Python, which is a module again",
        396,
    )
    rows = (
        ("module", "relu(linear(x) + x)", "run forward with proxies", "04"),
        ("proxies", "record each operation", "one node each", "03"),
        (
            "graph",
            "x · linear · add · relu · output",
            "write a line each",
            "05",
        ),
        ("code", "add = linear + x", "compile", "05"),
        ("module again", "the same values come out", "", ""),
    )
    for number, (title, text, step, stage) in enumerate(rows):
        y = 6 + 80 * number
        canvas.box(70, y, 220, 46, title, text)
        if step:
            canvas.arrow(180, y + 48, 180, y + 78, tone="strong")
            canvas.word(192, y + 63, f"{step} ({stage})", anchor="start")
    canvas.curve(292, 178, 292, 198, (350, 188), tone="new")
    canvas.word(326, 166, "passes", tone="new")
    canvas.word(326, 212, "edit it", tone="new")
    return canvas
