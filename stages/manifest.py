"""The stages and their exercises, read from `stages/NN/stage.toml`.

This is the only list of them: the generator, the check, the command line and
the site all use it.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
REFERENCE = ROOT / "fx"
"""The library itself, which the exercises are made from."""
EXERCISES = ROOT / "exercises"
"""The learner's folder; the tree that is checked is `exercises/fx`."""


class Exercise(NamedTuple):
    """One function to write: an exercise of its own, or a step of a piece.

    Attributes:
        name: its path under fx/, with dots, such as
            `linked_list.linked_list.Link.prepend`.
        file: the file it is in, below fx/: `linked_list/linked_list.py`.
        qualname: its name within that file: `Link.prepend`.
        stage: the number of its stage.
        task: what to write, in a line.
        hints: three hints, from a nudge to nearly the solution.
        anchor: the heading of the stage's page that explains it.
    """

    name: str
    file: str
    qualname: str
    stage: int
    task: str
    hints: tuple[str, ...]
    anchor: str

    @property
    def stub(self) -> str:
        """The message of the error that the unwritten function raises."""
        return f"stage {self.stage:02d}: {self.qualname}"

    @property
    def functions(self) -> tuple[Exercise, ...]:
        """Itself, as a piece has several."""
        return (self,)

    @property
    def title(self) -> str:
        """What the learner knows it by."""
        return self.qualname


class Piece(NamedTuple):
    """What is asked for at once: a function, or several that belong together.

    It is borrowed, blamed and reported as one.

    Attributes:
        title: what the learner knows it by: `ring`; of a single function,
            its qualified name.
        stage: the number of its stage.
        task: the contract of the whole, in a line.
        hints: three hints, from a nudge to nearly the solution.
        anchor: the heading of the stage's page that explains it.
        functions: what to write.
    """

    title: str
    stage: int
    task: str
    hints: tuple[str, ...]
    anchor: str
    functions: tuple[Exercise, ...]


class BreakIt(NamedTuple):
    """A version of fx that the learner is to break.

    Attributes:
        misconception: of the mutant that it is, in mutants.py.
        trial: the function of `stages/trials.py` that tries an answer.
        task: what to find.
    """

    misconception: str
    trial: str
    task: str


class Stage(NamedTuple):
    """A stage of the course.

    Attributes:
        number: 1 to 8.
        title: what it is about.
        summary: what the learner has built at the end of it.
        core: the files with its main idea, below fx/, in reading order.
        exercises: the functions to write, in the order to write them.
        pieces: the same, where functions that belong together are one.
        seal: what else is run if one asks for it; see `stages/seal.py`.
        break_it: what to break once the stage is done.
        first: a question of the stage's page, to begin with.
        after: a script that one can run once the stage is done.
        shows: what the script shows.
    """

    number: int
    title: str
    summary: str
    core: tuple[str, ...]
    exercises: tuple[Exercise, ...]
    seal: tuple[str, ...]
    break_it: BreakIt = BreakIt("", "", "")
    pieces: tuple[Piece, ...] = ()
    first: str = ""
    after: str = ""
    shows: str = ""

    @property
    def folder(self) -> Path:
        """The folder of its tests and its demo."""
        return HERE / f"{self.number:02d}"


@cache
def stages() -> dict[int, Stage]:
    """All stages, by number.

    Raises:
        ValueError: an exercise in a stage.toml is not as it must be.
    """
    found = sorted(HERE.glob("[0-9][0-9]/stage.toml"))
    return {int(path.parent.name): _read(path.parent) for path in found}


@cache
def exercises() -> dict[str, Exercise]:
    """All exercises of all stages, by name, in the order of the course."""
    found = [one for stage in stages().values() for one in stage.exercises]
    return {one.name: one for one in found}


def exercises_by_file() -> dict[str, list[Exercise]]:
    """The exercises by file of fx/, for the files that have any."""
    files: dict[str, list[Exercise]] = {}
    for one in exercises().values():
        files.setdefault(one.file, []).append(one)
    return files


@cache
def pieces() -> dict[str, Piece]:
    """The name of each function -> the piece that it belongs to."""
    return {
        one.name: piece
        for stage in stages().values()
        for piece in stage.pieces
        for one in piece.functions
    }


def find(name: str) -> Exercise | Piece:
    """The piece or function of this name; its end is enough: `prepend`.

    Raises:
        LookupError: there is none, or more than one; the message lists them.
    """
    for piece in pieces().values():
        if piece.title.lower() == name.lower() and len(piece.functions) > 1:
            return piece
    return find_function(name)


def find_function(name: str) -> Exercise:
    """The function of this name, of which the end is enough.

    Raises:
        LookupError: there is none, or more than one; the message lists them.
    """
    known = exercises()
    if name in known:
        return known[name]
    short = [one for one in known.values() if _ends(one.name, name)]
    if not short:  # `make_room` is accepted for `_make_room`
        short = [
            one
            for one in known.values()
            if _ends(one.name.replace("._", "."), name.lstrip("_"))
        ]
    if len(short) == 1:
        return short[0]
    if short:
        several = ", ".join(one.name for one in short)
        raise LookupError(f"{name!r} can mean {several}: give more of the name")
    raise LookupError(
        f"there is no exercise {name!r}; `pytest stages/01` lists the "
        f"exercises of a stage"
    )


def _ends(name: str, end: str) -> bool:
    """Whether a dotted name ends in these components, ignoring case."""
    return f".{name}".lower().endswith(f".{end}".lower())


def _read(folder: Path) -> Stage:
    """A stage from its folder."""
    path = folder / "stage.toml"
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    number = int(folder.name)
    found = [_exercise(row, number, path) for row in table["exercise"]]
    title, summary = table["title"], table["summary"]
    core, seal = tuple(table["core"]), tuple(table["seal"])
    to_break = BreakIt(**table["break_it"])
    joined = _pieces(found, table.get("piece", []), path)
    return Stage(
        number,
        title,
        summary,
        core,
        tuple(found),
        seal,
        to_break,
        joined,
        table["first"],
        **table["after"],
    )


def _pieces(
    found: list[Exercise], rows: list[dict[str, object]], path: Path
) -> tuple[Piece, ...]:
    """The pieces of a stage, each where its first function is."""
    known = {one.name: one for one in found}
    joined: dict[str, Piece] = {}
    for row in rows:
        names, title = row["functions"], str(row["title"])
        hints = _hints(row, title, path)
        if not isinstance(names, list) or not {*names} <= {*known}:
            raise ValueError(f"{path}: {title} names what is not an exercise")
        functions = tuple(known[name] for name in names)
        task, anchor = str(row["task"]), str(row["anchor"])
        stage = functions[0].stage
        piece = Piece(title, stage, task, hints, anchor, functions)
        joined |= dict.fromkeys(names, piece)
    for one in found:
        alone = Piece(
            one.qualname, one.stage, one.task, one.hints, one.anchor, (one,)
        )
        joined.setdefault(one.name, alone)
    return tuple(dict.fromkeys(joined[one.name] for one in found))


def _hints(row: dict[str, object], name: str, path: Path) -> tuple[str, ...]:
    """The three hints of a row of stage.toml.

    Raises:
        ValueError: there are not three.
    """
    hints = row["hints"]
    if not isinstance(hints, list) or len(hints) != 3 or not all(hints):
        raise ValueError(f"{path}: {name} must have three hints")
    return tuple(hints)


def _exercise(row: dict[str, object], stage: int, path: Path) -> Exercise:
    """An exercise from its table in stage.toml."""
    name, task = str(row["function"]), str(row["task"])
    hints = _hints(row, name, path)
    file, qualname = _split(name, path)
    return Exercise(
        name, file, qualname, stage, task, hints, str(row["anchor"])
    )


def _split(name: str, path: Path) -> tuple[str, str]:
    """A dotted name as the file under fx/ and the name within it."""
    parts = name.split(".")
    for end in range(len(parts) - 1, 0, -1):
        file = "/".join(parts[:end]) + ".py"
        if (REFERENCE / file).is_file():
            return file, ".".join(parts[end:])
    raise ValueError(f"{path}: {name} is not in a file of fx/")
