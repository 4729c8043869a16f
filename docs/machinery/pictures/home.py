"""The whole of fx in one drawing: a program becomes a graph and back."""

from __future__ import annotations

from typing import Final

from docs.machinery.svg import Canvas

_TITLE: Final = (
    "The forward of a module runs on proxies, which record each operation as "
    "a node of a graph; passes edit the graph; codegen writes it as Python, "
    "which is a module again; or an interpreter runs it node by node"
)


def draw() -> Canvas:
    """From a module to its graph; below it the two ways to run a graph."""
    canvas = Canvas(_TITLE, 394)
    canvas.box(8, 6, 230, 46, "a module", "relu(linear(x) + x)")
    _step(canvas, 123, 54, 82, "run forward on proxies (04)")
    canvas.box(8, 84, 230, 46, "proxies", "record each operation")
    _step(canvas, 123, 132, 160, "a node for each (03)")
    graph = ("a graph (01, 02)", "x · linear · add · relu · output")
    canvas.box(8, 162, 230, 46, *graph)
    canvas.curve(240, 175, 240, 197, (300, 186), tone="new")
    for y, line in ((168, "passes"), (186, "edit it"), (204, "(07, 08)")):
        canvas.word(282, y, line, anchor="start", tone="new")
    _step(canvas, 70, 210, 254, "write it (05)")
    canvas.arrow(214, 210, 232, 254, tone="strong")
    canvas.word(236, 232, "or run it (06)", anchor="start")
    canvas.box(8, 256, 170, 46, "code", "add = linear + x")
    canvas.box(190, 256, 166, 46, "an interpreter", "one node at a time")
    _step(canvas, 70, 304, 332, "compile (05)")
    canvas.box(8, 334, 170, 46, "a module again", "run, train, save it")
    return canvas


def _step(canvas: Canvas, x: float, y: float, end: float, words: str) -> None:
    """An arrow down to the next box, and what is done there."""
    canvas.arrow(x, y, x, end, tone="strong")
    canvas.word(x + 12, (y + end) / 2 - 1, words, anchor="start")
