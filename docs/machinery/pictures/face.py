"""The graph of the first page as it lies in memory: a ring of nodes."""

from __future__ import annotations

import json
from math import cos, pi, sin
from typing import Final, TypeAlias

from docs.machinery import running
from docs.machinery.svg import Canvas, Tone

Point: TypeAlias = tuple[float, float]

_MIDDLE: Final = 180.0
_RADIUS: Final = 132.0
_WIDTH, _HEIGHT = 92.0, 38.0


def draw() -> Canvas:
    """The nodes on a ring that a sentinel closes; across it, the uses."""
    film = json.loads(running.film("docs.examples.steps_home"))
    shot = film["shots"][-1]
    names = ["sentinel", *(row["name"] for row in shot["rows"])]
    canvas = Canvas(
        f"{', '.join(names)} in a ring; across it, an arrow from each value "
        "to the node that uses it",
        360,
    )
    turn = 2 * pi / len(names)
    places = {name: _place(turn * k) for k, name in enumerate(names)}
    for k in range(len(names)):
        x1, y1 = _place(turn * k)
        x2, y2 = _place(turn * (k + 1))
        way = f"M{x1:.1f} {y1:.1f}A{_RADIUS} {_RADIUS} 0 0 1 {x2:.1f} {y2:.1f}"
        canvas.pieces.append(f'<path class="fx-line" d="{way}"/>')
    for arc in shot["arcs"]:
        _use(canvas, places[arc["start"]], places[arc["end"]])
    for name, (x, y) in places.items():
        left, top = x - _WIDTH / 2, y - _HEIGHT / 2
        tone: Tone = "spark" if name == "sentinel" else "strong"
        canvas.box(left, top, _WIDTH, _HEIGHT, name, tone=tone)
    return canvas


def _place(angle: float) -> Point:
    """The middle of a node."""
    return _MIDDLE + _RADIUS * sin(angle), _MIDDLE - _RADIUS * cos(angle)


def _use(canvas: Canvas, start: Point, end: Point) -> None:
    """An arrow within the ring, from the edge of one node to another's."""
    bend = (
        (start[0] + end[0] + 2 * _MIDDLE) / 4,
        (start[1] + end[1] + 2 * _MIDDLE) / 4,
    )
    here, there = _edge(start, bend), _edge(end, bend)
    canvas.curve(*here, *there, bend, tone="new")


def _edge(middle: Point, towards: Point) -> Point:
    """Where the way from a node's middle leaves its box."""
    dx, dy = towards[0] - middle[0], towards[1] - middle[1]
    part = min(
        (_WIDTH / 2 + 3) / (abs(dx) or 0.1),
        (_HEIGHT / 2 + 3) / (abs(dy) or 0.1),
    )
    return middle[0] + part * dx, middle[1] + part * dy
