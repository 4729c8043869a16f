"""`python -m stages grade FOLDER…`: what students have right, by exercise.

Of each folder only the files with exercises are read; all else is this
project's.  Each stage of each student is checked in a process and a copy of
its own, so that a program that hangs, or ends its process, costs nobody else
anything.

There are no threads here, because up to Python 3.12 two threads that parse at
once may end in a SystemError.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing import connection
from pathlib import Path
from time import monotonic
from typing import Final, NamedTuple, TypeAlias

from rich.console import Console
from rich.progress import track

from stages import functions
from stages.generate import generated, put
from stages.guard import Guard, limit
from stages.manifest import ROOT, exercises, exercises_by_file, stages
from stages.processes import process
from stages.report import DONE, TO_WRITE
from stages.running import Job, run
from stages.tree import LOADER, Broken, Tree

_HELD = "fx", "exercises", "docs", ".git", "stages/capstones"
SECRET: Final = [ROOT / name for name in _HELD]
"""Where solutions are."""

Files: TypeAlias = Mapping[str, str]
"""Path below fx -> text."""


class Mark(NamedTuple):
    """A stage of a student: exercise -> what is wrong, or ""; and notes."""

    told: Mapping[str, str]
    notes: Sequence[str] = ()

    @property
    def right(self) -> int:
        """How many exercises are right."""
        return sum(not why for why in self.told.values())


class Row(NamedTuple):
    """A student: the name, stage -> mark, what is wrong with the folder."""

    student: str
    marks: dict[int, Mark]
    problem: str = ""

    @property
    def right(self) -> int:
        """How many exercises are right."""
        return sum(mark.right for mark in self.marks.values())

    @property
    def notes(self) -> list[str]:
        """What a person should know, each with its stage."""
        return [self.problem] * bool(self.problem) + [
            f"{number:02d}: {note}"
            for number, mark in self.marks.items()
            for note in mark.notes
        ]


def grade(
    folders: Sequence[Path],
    numbers: Sequence[int],
    console: Console,
    *,
    seconds: int = 20,
    jobs: int = 0,
) -> list[Row]:
    """What the students of some folders have right in some stages.

    Args:
        folders: of the students.
        numbers: of the stages.
        console: where a bar shows how far it is.
        seconds: of processor time for a stage; one that waits is stopped after
            three times as long and a minute, as a machine may be busy.
        jobs: how many processes run at a time; 0 for one a processor.
    """
    rows: dict[str, Row] = {}
    waiting: list[tuple[Row, int, Files]] = []
    for folder in folders:
        texts = _handed_in(folder)
        parts = reversed(folder.resolve().parts)
        name = next(one for one in parts if one not in ("exercises", "fx"))
        name = str(folder) if name in rows else name
        problem = "" if texts else "there are no exercises in it"
        row = rows[name] = Row(name, dict.fromkeys(numbers, Mark({})), problem)
        waiting += [(row, number, texts) for number in numbers]
    stubs, running = generated(), list[_Check]()
    bar = range(len(waiting))
    try:
        for _ in track(bar, "grading", console=console, transient=True):
            while waiting and len(running) < (jobs or os.cpu_count() or 1):
                row, number, texts = waiting.pop(0)
                files = _files(stubs, texts, number)
                running.append(_Check(row, number, files, seconds))
            left = max(0, running[0].deadline - monotonic())
            ended = connection.wait([one.ends for one in running], left)
            over = [one for one in running if one.ends in ended]
            check = [*over, running[0]][0]
            running.remove(check)
            check.end()
    finally:
        for check in running:
            check.end()
    return [*rows.values()]


def _handed_in(folder: Path) -> Files:
    """A student's files: those of a clone, of `exercises/`, or of `fx/`.

    A clone has an fx of its own beside `exercises`, which is the reference.
    """
    is_clone = (folder / "exercises").is_dir() or (folder / "stages").is_dir()
    inner = folder / "exercises" / "fx" if is_clone else folder / "fx"
    root = (inner if is_clone or inner.is_dir() else folder).absolute()
    found = {}
    for file in exercises_by_file():
        # A link may lead to the solution.
        whole = root.parent.resolve() / root.name / file
        with contextlib.suppress(OSError):
            if whole == whole.resolve():
                found[file] = whole.read_text("utf-8-sig", errors="replace")
    return found


def _files(stubs: Files, texts: Files, number: int) -> Files:
    """An fx with a student's files, for the check of one stage.

    A file of another stage is left out if it cannot be borrowed for.
    """
    files = {**stubs, **texts}
    for file, ones in exercises_by_file().items():
        if all(one.stage != number for one in ones):
            names = [one.qualname for one in ones]
            yours, ours = files[file], stubs[file]
            if _signatures(yours, names) != _signatures(ours, names):
                files[file] = ours
    return files


def _signatures(text: str, names: Sequence[str]) -> list[str]:
    """The signatures of a file's functions; none if one cannot be found."""
    with contextlib.suppress(Exception):
        tree = ast.parse(text)
        found = [functions.function(tree, name) for name in names]
        return [functions.signature(one) for one in found]
    return []


class _Check:
    """The check of a stage of one student, which begins at once."""

    def __init__(
        self, row: Row, number: int, files: Files, seconds: int
    ) -> None:
        self._row = row
        self._number = number
        self._desk = Path(tempfile.mkdtemp(prefix="grade-")).resolve()
        for file, text in files.items():
            put(self._desk / "exercises" / "fx" / file, text)
        self._process = process(_check, (self._desk, number, seconds))
        self._process.start()
        self.ends = self._process.sentinel
        self.deadline = monotonic() + 3 * seconds + 60

    def end(self) -> None:
        """End the process, note what was found, and remove the copy."""
        self._process.kill()
        self._process.join()
        notes = [
            f"it ended its own process (exit status {self._process.exitcode}), "
            f"or was stopped for the time or memory it took"
        ]
        titles = [piece.title for piece in stages()[self._number].pieces]
        told = dict.fromkeys(titles, "not judged")
        with contextlib.suppress(OSError, ValueError, TypeError):
            text = (self._desk / "result").read_text(encoding="utf-8")
            found, notes = json.loads(text)
            told |= found
        self._row.marks[self._number] = Mark(told, notes)
        shutil.rmtree(self._desk, ignore_errors=True)


def _check(desk: Path, number: int, seconds: int) -> None:
    """Limit this process, run the tests of a stage, and write the result."""
    tempfile.tempdir = tempfile.mkdtemp(dir=desk)
    os.environ.update(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", OMP_NUM_THREADS="1")
    for output in (0, 1, 2):
        os.dup2(os.open(os.devnull, os.O_RDWR), output)
    others = [one.name for one in exercises().values() if one.stage != number]
    tree = Tree(desk / "exercises" / "fx", [number], borrowed=others)
    limit(seconds, memory=2048)
    noted: dict[str, None] = {}
    loads = LOADER.exec_module.__code__
    sys.addaudithook(Guard(desk, tree.root, SECRET, loads, noted.setdefault))
    told: dict[str, str] = {}
    try:
        result = run(Job(tree, [number], seconds=2.0)).ran()
        for piece in stages()[number].pieces:
            sign = result.verdicts[piece.title]
            why = "to write" if sign == TO_WRITE else "not judged"
            why = result.told.get(piece.title, why)[:300]
            told[piece.title] = "" if sign == DONE else why
    except Broken as error:
        noted[f"{error}".partition("\n")[0]] = None
    found = json.dumps([told, [*noted][-3:]])
    (desk / "result").write_text(found, encoding="utf-8")
    os._exit(0)
