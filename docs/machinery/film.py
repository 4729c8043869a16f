"""A film: the states of a program, one after the other, for `/// trace`.

`Choices` are films of which the reader picks one, for `/// choose`.

    def film() -> Film:
        film = Film("stages.residual.Residual.forward")
        film.graph("Nothing is recorded yet.", graph)
        graph.placeholder("x")
        film.graph("The argument of forward becomes a node.", graph, at="x: ")
        return film

Each shot is taken from the real thing, and what is new, changed, moved or
gone since the shot before is found by comparing the two: nobody writes it
down, so it cannot be wrong.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import SequenceMatcher
from types import CodeType
from typing import Literal, Protocol, TypeAlias

from docs.machinery.source import find

MOST_ROWS = 12
MOST_SHOTS = 20

Mark: TypeAlias = Literal["", "new", "changed", "moved", "gone", "look"]
"""What happened to a piece since the shot before; "look" is the author's."""


@dataclass(frozen=True)
class Row:
    """A node, a link, a value: a line of the picture.

    Attributes:
        name: what it is called; a row is known by it from shot to shot.
        text: what it says.
        note: a second text, at its end.
        mark: what happened to it.
    """

    name: str
    text: str
    note: str = ""
    mark: Mark = ""


@dataclass(frozen=True)
class Arc:
    """An arrow from one row to another, by their names."""

    start: str
    end: str
    mark: Mark = ""


@dataclass(frozen=True)
class Line:
    """A line of generated code."""

    text: str
    mark: Mark = ""


@dataclass(frozen=True)
class Spot:
    """A place in the source: lines as in the file, columns from 0."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True)
class Shot:
    """One state.

    Attributes:
        say: what happens here, in a sentence or two.
        rows: the picture.
        arcs: its arrows.
        code: the generated code so far.
        spot: the place in the source that is responsible.
    """

    say: str
    rows: tuple[Row, ...]
    arcs: tuple[Arc, ...] = ()
    code: tuple[Line, ...] = ()
    spot: Spot | None = None


class Node(Protocol):
    """What a film asks of a node (fx's, or torch.fx's)."""

    @property
    def name(self) -> str:
        """Its name in the graph."""

    @property
    def op(self) -> str:
        """Its opcode."""

    @property
    def target(self) -> object:
        """What it calls or fetches."""

    @property
    def args(self) -> tuple[object, ...]:
        """Its positional arguments."""

    @property
    def kwargs(self) -> Mapping[str, object]:
        """Its keyword arguments."""

    @property
    def all_input_nodes(self) -> Sequence[Node]:
        """The nodes in its arguments."""


class Graph(Protocol):
    """What a film asks of a graph."""

    @property
    def nodes(self) -> Iterable[Node]:
        """Its nodes, in order."""


class Film:
    """Shots of one program, in order.

    Attributes:
        source: the dotted name of the function that is shown beside.
        rows: what the rows are, the heading of their column.
        code: what the code is, the heading of its column.
        shots: the states so far.
    """

    def __init__(
        self,
        source: str = "",
        *,
        rows: str = "Nodes",
        code: str = "Code",
    ) -> None:
        self.source = source
        self.rows = rows
        self.code = code
        self.shots: list[Shot] = []

    def graph(
        self,
        say: str,
        graph: Graph,
        *,
        at: str | Spot | None = None,
        code: str = "",
        notes: Mapping[str, str] | None = None,
        look: Iterable[str] = (),
    ) -> None:
        """Take a shot of a graph: its nodes, and an arc for each use.

        Args:
            say: what happens here.
            graph: the graph as it is now.
            at: a text that stands once in the source, or the place itself.
            code: the generated code, as it is now.
            notes: a second text for some nodes, by name.
            look: names of nodes to point out.
        """
        noted, pointed = notes or {}, set(look)
        rows = [
            Row(
                node.name,
                call_text(node),
                noted.get(node.name, ""),
                "look" if node.name in pointed else "",
            )
            for node in graph.nodes
        ]
        arcs = [
            Arc(used.name, node.name)
            for node in graph.nodes
            for used in node.all_input_nodes
        ]
        self.shot(say, rows, arcs, code=code, at=at)

    def shot(
        self,
        say: str,
        rows: Sequence[Row],
        arcs: Sequence[Arc] = (),
        *,
        at: str | Spot | None = None,
        code: str = "",
    ) -> None:
        """Take a shot of anything that can be listed.

        Args:
            say: what happens here.
            rows: the picture as it is now; marks are found, not given.
            arcs: the arrows as they are now.
            at: a text that stands once in the source, or the place itself.
            code: the generated code, as it is now.

        Raises:
            ValueError: too much for one picture, or too many shots.
        """
        if len(rows) > MOST_ROWS or len(self.shots) == MOST_SHOTS:
            raise ValueError(
                f"a film has at most {MOST_SHOTS} shots of {MOST_ROWS} rows"
            )
        spot = self._spot(at) if isinstance(at, str) else at
        lines = [Line(line) for line in code.strip("\n").splitlines()]
        now = Shot(say, tuple(rows), tuple(arcs), tuple(lines), spot)
        self.shots.append(now)

    def marked(self) -> list[Shot]:
        """The shots, with what is different from the one before."""
        before = [self.shots[0], *self.shots]
        return [
            compared(a, b) for a, b in zip(before, self.shots, strict=False)
        ]

    def json(self) -> str:
        """The film as text, for the process that draws it."""
        shots = [asdict(shot) for shot in self.marked()]
        parts = {"source": self.source, "rows": self.rows, "code": self.code}
        return json.dumps({**parts, "shots": shots})

    def _spot(self, text: str) -> Spot:
        """Where a text stands in the source.

        Raises:
            ValueError: it does not stand there exactly once.
        """
        place = find(self.source)
        numbers = range(place.unit.first, place.unit.last + 1)
        lines = [(n, place.module.lines[n - 1]) for n in numbers]
        found = [(n, line) for n, line in lines if text in line]
        if len(found) != 1 or found[0][1].count(text) != 1:
            raise ValueError(f"{text!r} must stand once in {self.source}")
        number, line = found[0]
        start = line.index(text)
        return Spot(number, start, number, start + len(text))


class Choices:
    """A question whose answers have been worked out, for `/// choose`.

        def choices() -> Choices:
            asked = Choices("Which node is erased?")
            for name in ("add", "relu"):
                film = asked.option(f"erase {name}")
                ...                    # a shot before, and one after

    Of each film the last shot is shown, with what is different from the shot
    before it.

    Attributes:
        question: what the reader chooses.
        films: label -> its film.
    """

    def __init__(
        self, question: str, *, rows: str = "Nodes", code: str = "Code"
    ) -> None:
        self.question = question
        self.rows = rows
        self.code = code
        self.films: dict[str, Film] = {}

    def option(self, label: str) -> Film:
        """The film of one more answer, without shots yet.

        Raises:
            ValueError: there is an answer with this label.
        """
        if label in self.films:
            raise ValueError(f"two answers are labelled {label!r}")
        self.films[label] = Film(rows=self.rows, code=self.code)
        return self.films[label]

    def json(self) -> str:
        """The choices as text, for the process that draws them."""
        shots = [asdict(film.marked()[-1]) for film in self.films.values()]
        parts = {"source": "", "rows": self.rows, "code": self.code}
        asked = {"question": self.question, "labels": [*self.films]}
        return json.dumps({**parts, **asked, "shots": shots})


def call_text(node: Node) -> str:
    """A node without its name: opcode, target and arguments, short."""
    target = getattr(node.target, "__name__", node.target)
    if node.op == "placeholder":
        return "placeholder"
    if node.op == "get_attr":
        return f"get_attr {target}"
    words = [value_text(one) for one in node.args]
    words += [f"{k}={value_text(v)}" for k, v in node.kwargs.items()]
    if node.op == "output":
        return f"output {', '.join(words)}"
    return f"{node.op} {target}({', '.join(words)})"


def value_text(value: object) -> str:
    """An argument, short."""
    return str(getattr(value, "name", value))


def frame_spot(code: CodeType) -> Spot | None:
    """The expression that runs now in the innermost frame of a function.

    Args:
        code: the function's `__code__`.

    Returns:
        Its place, to the column; None if the function is not running.
    """
    frame = sys._getframe(1)
    while frame.f_code is not code:
        if frame.f_back is None:
            return None
        frame = frame.f_back
    line, end, column, end_column = list(code.co_positions())[
        frame.f_lasti // 2
    ]
    if None in (line, end, column, end_column):
        return None
    return Spot(line or 0, column or 0, end or 0, end_column or 0)


def code_of(function: Callable[..., object]) -> CodeType:
    """A function's code object.

    Raises:
        TypeError: it is not written in Python.
    """
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        raise TypeError(f"{function} is not written in Python")
    return code


# --- two shots, compared ----------------------------------------------------


def compared(before: Shot, now: Shot) -> Shot:
    """A shot in which everything says what happened to it.

    Rows that are gone are still there, at their old place.
    """
    old = {row.name: row for row in before.rows}
    moved = _moved(before.rows, now.rows)
    rows = [_marked(row, old, moved) for row in now.rows]
    names = {row.name for row in now.rows}
    for index, row in enumerate(before.rows):
        if row.name not in names:
            gone = replace(row, mark="gone")
            rows.insert(_place(before.rows, index, rows), gone)
    arcs = {(arc.start, arc.end) for arc in before.arcs}
    return replace(
        now,
        rows=tuple(rows),
        arcs=tuple(
            arc if (arc.start, arc.end) in arcs else replace(arc, mark="new")
            for arc in now.arcs
        ),
        code=tuple(_marked_code(before.code, now.code)),
    )


def _moved(before: Sequence[Row], rows: Sequence[Row]) -> set[str]:
    """The names that stand in another order than before."""
    old = {row.name for row in before}
    new = [row.name for row in rows if row.name in old]
    kept = [row.name for row in before if row.name in new]
    blocks = SequenceMatcher(None, kept, new, False).get_matching_blocks()
    stayed = {kept[i] for b in blocks for i in range(b.a, b.a + b.size)}
    return set(new) - stayed


def _marked(row: Row, old: Mapping[str, Row], moved: set[str]) -> Row:
    """A row with its mark; one that its author calls gone, is."""
    if row.mark == "gone":
        return row
    if row.name not in old:
        return replace(row, mark="new")
    if row.name in moved:
        return replace(row, mark="moved")
    was = old[row.name]
    if (was.text, was.note) != (row.text, row.note):
        return replace(row, mark="changed")
    return row


def _place(before: Sequence[Row], index: int, rows: Sequence[Row]) -> int:
    """Where a row that is gone is shown: behind its old neighbour."""
    names = [row.name for row in rows]
    for row in reversed(before[:index]):
        if row.name in names:
            return names.index(row.name) + 1
    return 0


def _marked_code(before: Sequence[Line], now: Sequence[Line]) -> list[Line]:
    """The lines of code; those that were not there are new."""
    old, new = [line.text for line in before], [line.text for line in now]
    blocks = SequenceMatcher(None, old, new, False).get_matching_blocks()
    kept = {i for b in blocks for i in range(b.b, b.b + b.size)}
    return [
        line if number in kept else replace(line, mark="new")
        for number, line in enumerate(now)
    ]
