"""A pattern laid over Residual's graph, from the anchor upwards."""

from __future__ import annotations

from docs.machinery.svg import Canvas, Tone

_PATTERN = {"a": (12, 60), "b": (86, 60), "add": (49, 124), "relu": (49, 188)}
_GRAPH = {
    "x": (284, 8),
    "linear": (216, 60),
    "add": (250, 124),
    "relu": (250, 188),
    "output": (250, 252),
}
_PATTERN_USES = (("a", "add"), ("b", "add"), ("add", "relu"))
_GRAPH_USES = (
    ("x", "linear"),
    ("linear", "add"),
    ("x", "add"),
    ("add", "relu"),
    ("relu", "output"),
)
_MATCHED = ("add", "relu")
_WIDTH, _HEIGHT = 62, 30


def draw() -> Canvas:
    """Left the pattern, right the graph, between them who is paired."""
    canvas = Canvas(
        "The pattern's relu is paired with the graph's relu, then add with "
        "add, then a with linear and b with x",
        320,
    )
    for name, place in _PATTERN.items():
        _box(canvas, name, place, matched=name in _MATCHED)
    for name, place in _GRAPH.items():
        _box(canvas, name, place, matched=name in _MATCHED)
    for used, user in _PATTERN_USES:
        _use(canvas, _PATTERN[used], _PATTERN[user])
    for used, user in _GRAPH_USES:
        _use(canvas, _GRAPH[used], _GRAPH[user])
    _pair(canvas, 1, "relu", 203)
    _pair(canvas, 2, "add", 139)
    canvas.word(93, 306, "pattern")
    canvas.word(281, 306, "graph")
    canvas.word(12, 30, "3  a is linear", anchor="start", tone="new")
    canvas.word(12, 46, "4  b is x", anchor="start", tone="new")
    return canvas


def _box(
    canvas: Canvas, name: str, place: tuple[int, int], *, matched: bool
) -> None:
    """A node; those of the match stand out."""
    tone: Tone = "strong" if matched else "plain"
    canvas.box(*place, _WIDTH, _HEIGHT, name, tone=tone)


def _use(canvas: Canvas, used: tuple[int, int], user: tuple[int, int]) -> None:
    """An arrow from a value to its reader."""
    middle = _WIDTH / 2
    start, end = used[0] + middle, user[0] + middle
    if end != start:
        end += 12 if start > end else -12
    canvas.arrow(start, used[1] + _HEIGHT + 2, end, user[1] - 3)


def _pair(canvas: Canvas, number: int, name: str, y: float) -> None:
    """Two nodes that are paired, in their order."""
    left = _PATTERN[name][0] + _WIDTH + 4
    canvas.arrow(left, y, _GRAPH[name][0] - 4, y, tone="new")
    canvas.word((left + _GRAPH[name][0]) / 2, y - 12, f"{number}", tone="new")
