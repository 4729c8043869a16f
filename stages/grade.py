"""`python -m stages grade FOLDER…`: what students have right, by exercise.

Of each folder only the files with exercises are read; all else is this
project's.  Each stage of each student is checked on a separate copy in a
separate process, so that a program that hangs, or ends its process, does not
disturb the others.

The guard stops accidents.  It does not stop somebody who sets out to break out
of Python: to grade people whom you do not trust, run this in a container.

The runners of GitHub Classroom, GitLab and Jenkins read JUnit's XML: a suite is
a student's stage, a case is an exercise.

Nothing runs in threads, because up to Python 3.12 two threads that parse at
once may end in a SystemError.
"""

from __future__ import annotations

import ast
import contextlib
import csv
import importlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
import xml.etree.ElementTree as Xml
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import connection
from pathlib import Path
from time import monotonic
from types import CodeType, FrameType
from typing import Final, NamedTuple, TypeAlias

from rich.console import Console
from rich.progress import track
from rich.table import Table

from stages import functions
from stages.generate import generated, put
from stages.manifest import (
    EXERCISES,
    ROOT,
    exercises,
    exercises_by_file,
    stages,
)
from stages.report import DONE, TO_WRITE
from stages.running import Job, process, run
from stages.seal import TESTS, seal
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
    seals: bool = False,
) -> list[Row]:
    """What the students of some folders have right in some stages.

    Args:
        folders: of the students.
        numbers: of the stages.
        console: where a bar shows how far it is.
        seconds: of processor time for a stage; one that waits is stopped after
            three times as long and a minute, as a machine may be busy.
        jobs: how many processes run at a time; 0 for one a processor.
        seals: whether to seal each stage in which all is right, which takes
            minutes, and runs without the guard.
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
    asked = [*waiting] if seals else []
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
    for row, number, texts in asked:
        mark = row.marks[number]
        if mark.told and not any(mark.told.values()) and not mark.notes:
            note = _sealed(_files(stubs, texts, number), number, console)
            row.marks[number] = mark._replace(notes=[note])
    return [*rows.values()]


def _sealed(files: Files, number: int, console: Console) -> str:
    """Seal a stage of a student, and say what came of it."""
    with tempfile.TemporaryDirectory(prefix="seal-") as folder:
        desk = Path(folder).resolve() / "exercises"
        for file, text in files.items():
            put(desk / "fx" / file, text)
        shutil.copy(EXERCISES / "pyproject.toml", desk)
        tree = Tree(desk / "fx", [number], borrowed=_others(number))
        failure = seal(tree, number, TESTS, console)
    return f"not sealed: {failure.what}" if failure else "sealed"


def _others(number: int) -> list[str]:
    """The exercises of all other stages."""
    return [one.name for one in exercises().values() if one.stage != number]


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
    tree = Tree(desk / "exercises" / "fx", [number], borrowed=_others(number))
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
            signs = [result.verdicts[one.name] for one in piece.functions]
            if 0 < (right := signs.count(DONE)) < len(signs):
                why = f"{right} of {len(signs)} functions right: {why}"
            told[piece.title] = "" if sign == DONE else why
    except Broken as error:
        noted[f"{error}".partition("\n")[0]] = None
    found = json.dumps([told, [*noted][-3:]])
    (desk / "result").write_text(found, encoding="utf-8")
    os._exit(0)


# --- what a process may do -------------------------------------------------

_WRITES: Final = frozenset(
    "os.chflags os.chmod os.chown os.link os.mkdir os.remove os.rename "
    "os.rmdir os.symlink os.truncate os.utime shutil.move "
    "shutil.rmtree".split()
)
"""Events about files that change; a text among the arguments is a path."""

_TO_WRITE: Final = (
    os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
)

_STARTS: Final = frozenset(
    "os.exec os.fork os.forkpty os.kill os.killpg os.posix_spawn os.spawn "
    "os.system pty.spawn subprocess.Popen".split()
)


def limit(seconds: int, memory: int) -> None:
    """Limit processor time, and the MiB beyond what is used, where one can."""
    if sys.platform == "win32":
        return
    resource = importlib.import_module("resource")
    # At the first a process is told to end, at the second killed.
    limits = [
        (resource.RLIMIT_CPU, seconds, seconds + 2),
        (resource.RLIMIT_FSIZE, 2**26, 2**26),
    ]
    with contextlib.suppress(OSError):  # only Linux says what it has
        text = Path("/proc/self/status").read_text(encoding="ascii")
        used = int(text.partition("VmData:")[2].split()[0]) * 1024
        limits.append((resource.RLIMIT_DATA, *[used + memory * 2**20] * 2))
    for kind, soft, hard in limits:
        with contextlib.suppress(ValueError):  # the system's is lower
            resource.setrlimit(kind, (soft, hard))


class Guard:
    """Refuses, as an audit hook, what a student's code has no reason to do.

    Args:
        writable: the folder in which files may be written.
        code: the folder of the student's code.
        secret: folders that this code may not read, with the solutions.
        loader: what imports the student's code, and may read the solutions.
        tell: is told what was refused.
    """

    def __init__(
        self,
        writable: Path,
        code: Path,
        secret: Sequence[Path],
        loader: CodeType,
        tell: Callable[[str], object],
    ) -> None:
        self._writable = f"{writable.resolve()}/", "/dev/"
        self._code = f"{code.resolve()}/"
        self._secret = tuple(f"{path.resolve()}/" for path in secret)
        self._loader = loader
        self._tell = tell

    def __call__(self, event: str, args: tuple[object, ...]) -> None:
        """Refuse one event of Python, or let it be."""
        if event == "open":
            place = os.path.realpath(_text(args[0]) or os.devnull)
            if isinstance(args[2], int) and args[2] & _TO_WRITE:
                self._check(place, "write")
            if place.startswith(self._secret) and self._is_students():
                self._refuse("read the solutions")
        elif event in _WRITES:
            for path in filter(None, map(_text, args)):
                folder, name = os.path.split(path)
                inside = os.path.join(_open_folder(args[-1]), folder)
                place = os.path.join(os.path.realpath(inside), name)
                self._check(place, event.partition(".")[2])
        elif event in _STARTS:
            self._refuse("start a process")

    def _check(self, place: str, verb: str) -> None:
        """Refuse what is done to a file outside of the folder."""
        if not f"{place}/".startswith(self._writable):
            self._refuse(f"{verb} {place}")

    def _is_students(self) -> bool:
        """Whether a line of the student's code is being run."""
        frame: FrameType | None = sys._getframe()
        while frame is not None and frame.f_code is not self._loader:
            if frame.f_code.co_filename.startswith(self._code):
                return True
            frame = frame.f_back
        return False

    def _refuse(self, what: str) -> None:
        """Tell, and raise a PermissionError."""
        self._tell(f"it wanted to {what}")
        raise PermissionError(f"not while it is graded: it wanted to {what}")


def _text(path: object) -> str:
    """A path as text; "" for what is not a path, as the number of a file."""
    if isinstance(path, str | bytes | os.PathLike):
        return os.fsdecode(path)
    return ""


def _open_folder(number: object) -> str:
    """The path of an open folder, if it is one and the system knows."""
    place = os.path.realpath(f"/proc/self/fd/{number}")
    return place if isinstance(number, int) and os.path.isdir(place) else ""


# --- what is written -------------------------------------------------------

_NOT_IN_XML: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd]")


def show(rows: Sequence[Row], console: Console) -> None:
    """Print the rows as a table, and what a person should know."""
    numbers = [f"{number:02d}" for number in rows[0].marks]
    table = Table("student", *numbers, "right", "notes", box=None)
    for row in rows:
        marks = row.marks.values()
        counts = [f"{mark.right}/{len(mark.told)}" for mark in marks]
        total = f"{row.right}/{sum(len(mark.told) for mark in marks)}"
        table.add_row(row.student, *counts, total, "; ".join(row.notes)[:120])
    console.print(table)


def as_csv(rows: Sequence[Row]) -> str:
    """A line for each student, with a column for each exercise: 1 or 0."""
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    heads = [
        f"{number:02d} {name}"
        for number, mark in rows[0].marks.items()
        for name in mark.told
    ]
    lines.writerow(["student", *heads, "right", "of", "notes"])
    for row in rows:
        marks = row.marks.values()
        points = [int(not why) for mark in marks for why in mark.told.values()]
        ends = [row.right, len(points), "; ".join(row.notes)]
        lines.writerow([row.student, *points, *ends])
    return out.getvalue()


def as_json(rows: Sequence[Row]) -> str:
    """All that is known, as a list of students."""
    found = [
        {
            "student": row.student,
            "right": row.right,
            "problem": row.problem,
            "stages": {f"{n:02d}": m._asdict() for n, m in row.marks.items()},
        }
        for row in rows
    ]
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


def as_xml(rows: Sequence[Row]) -> str:
    """JUnit's XML, with a case for each exercise."""
    root = Xml.Element("testsuites", name="fx")
    for row in rows:
        for number, mark in row.marks.items():
            title = _legal(f"{row.student}, stage {number:02d}")
            of = str(len(mark.told))
            counts = {"tests": of, "failures": str(int(of) - mark.right)}
            suite = Xml.SubElement(root, "testsuite", counts, name=title)
            for name, why in mark.told.items():
                names = {"name": name, "classname": title}
                case = Xml.SubElement(suite, "testcase", names)
                if why:
                    Xml.SubElement(case, "failure", message=_legal(why))
            notes = "\n".join([row.problem, *mark.notes]).strip()
            Xml.SubElement(suite, "system-err").text = _legal(notes)
    Xml.indent(root)
    return Xml.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _legal(text: str) -> str:
    """A text without characters that XML cannot have."""
    return _NOT_IN_XML.sub("?", text)


WRITERS: Final = {".csv": as_csv, ".json": as_json, ".xml": as_xml}
"""The end of a file's name -> what writes it."""
