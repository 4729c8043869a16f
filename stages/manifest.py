"""The stages and their exercises, read from `stages/NN/stage.toml`.

This is the only list of them: the generator, the check, the command line and
the site all use it.  Which stage a file of fx/ is of, its own first line says.
"""

from __future__ import annotations

import ast
import difflib
import re
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

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
    def alone(self) -> Piece:
        """The function as a piece."""
        rest = self.stage, self.task, self.hints, self.anchor
        return Piece(self.qualname, *rest, (self,))


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


def find(name: str) -> Piece:
    """The piece or function of this name; its end is enough: `prepend`.

    Raises:
        LookupError: there is none, or more than one; the message lists them.
    """
    for piece in pieces().values():
        if piece.title.lower() == name.lower() and len(piece.functions) > 1:
            return piece
    return find_function(name).alone


def find_function(name: str) -> Exercise:
    """The function of this name, of which the end is enough.

    Raises:
        LookupError: there is none, or more than one; the message lists them.
    """
    known = exercises()
    if name in known:
        return known[name]
    short = [one for one in known.values() if _ends(one.name, name)]
    if len(short) == 1:
        return short[0]
    if short:
        several = ", ".join(one.name for one in short)
        raise LookupError(f"{name!r} can mean {several}: give more of the name")
    titles = [piece.title for piece in pieces().values()]
    names = [one.qualname.rpartition(".")[2] for one in known.values()]
    near = difflib.get_close_matches(name, dict.fromkeys([*titles, *names]))
    maybe = f"did you mean {' or '.join(near)}? " if near else ""
    raise LookupError(
        f"there is no exercise {name!r}; {maybe}`pytest stages/01` lists the "
        f"exercises of a stage"
    )


def _ends(name: str, end: str) -> bool:
    """Whether a dotted name ends so, without regard to case and underscores.

    `torch_function` is enough for `Proxy.__torch_function__`.
    """
    parts, ends = (
        [part.strip("_") for part in text.lower().split(".")]
        for text in (name, end)
    )
    return parts[-len(ends) :] == ends


Table: TypeAlias = Any
"""A table of a stage.toml."""


def _read(folder: Path) -> Stage:
    """A stage from its folder."""
    path, number = folder / "stage.toml", int(folder.name)
    table: Table = tomllib.loads(path.read_text(encoding="utf-8"))
    found = tuple(_exercise(row, number, path) for row in table["exercise"])
    return Stage(
        number,
        table["title"],
        table["summary"],
        tuple(table["core"]),
        found,
        tuple(table["seal"]),
        BreakIt(**table["break_it"]),
        _pieces(found, table.get("piece", []), number),
        table["first"],
        **table["after"],
    )


def _exercise(row: Table, stage: int, path: Path) -> Exercise:
    """An exercise from its table in stage.toml."""
    name, hints = row["function"], tuple(row["hints"])
    place = _split(name, path)
    return Exercise(name, *place, stage, row["task"], hints, row["anchor"])


def _pieces(
    found: Sequence[Exercise], rows: Sequence[Table], stage: int
) -> tuple[Piece, ...]:
    """The pieces of a stage, each where its first function is."""
    joined = {one.name: one.alone for one in found}
    known = {one.name: one for one in found}
    for row in rows:
        told = row["title"], stage, row["task"], tuple(row["hints"])
        ones = tuple(known[name] for name in row["functions"])
        piece = Piece(*told, row["anchor"], ones)
        joined |= dict.fromkeys(row["functions"], piece)
    return tuple(dict.fromkeys(joined.values()))


def _split(name: str, path: Path) -> tuple[str, str]:
    """A dotted name as the file under fx/ and the name within it."""
    parts = name.split(".")
    for end in range(len(parts) - 1, 0, -1):
        file = "/".join(parts[:end]) + ".py"
        if (REFERENCE / file).is_file():
            return file, ".".join(parts[end:])
    raise ValueError(f"{path}: {name} is not in a file of fx/")


# --- mutants ---------------------------------------------------------------


class Mutant(NamedTuple):
    """A mistake in one function of the reference.

    Attributes:
        function: the exercise, `linked_list.linked_list.Link.prepend`.
        misconception: what a person who writes this believes, in a sentence.
        was: text that occurs exactly once in the reference's function.
        becomes: the text that replaces it, indented as in the file.
        told: a part of the sentence that the failing test must say.
    """

    function: str
    misconception: str
    was: str
    becomes: str
    told: str

    def applied_to(self, function_source: str) -> str:
        """The wrong version of the function.

        Args:
            function_source: the function as the reference has it.

        Raises:
            ValueError: `was` does not occur exactly once in it.
        """
        count = function_source.count(self.was)
        if count != 1:
            raise ValueError(
                f"mutant of {self.function}: {self.was!r} occurs {count} times "
                f"in the function, and must occur once"
            )
        return function_source.replace(self.was, self.becomes)


# --- the stage of each file ------------------------------------------------

_FIRST_LINE = re.compile(r"Stage (\d\d), ([^:]+): (.+)")


class SourceFile(NamedTuple):
    """A file of the library.

    Attributes:
        path: its path below fx/.
        stage: the number of its stage.
        title: the name of its stage.
        about: what lives in it, in one line.
    """

    path: str
    stage: int
    title: str
    about: str


def source_file(path: Path, library: Path = REFERENCE) -> SourceFile | None:
    """What a file of the library says of its stage; None if it has none."""
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
    match = _FIRST_LINE.match(docstring)
    if match is None:
        return None
    stage, title, about = match.groups()
    name = str(path.relative_to(library))
    return SourceFile(name, int(stage), title, about)


def source_files(library: Path = REFERENCE) -> list[SourceFile]:
    """The files of the library that have a stage, in order of the stages."""
    read = (source_file(path, library) for path in library.rglob("*.py"))
    found = [file for file in read if file is not None]
    return sorted(found, key=lambda file: (file.stage, file.path))
