"""`python -m stages grade FOLDER…`: what students have right, without trust.

Of each folder only the files are read in which there are exercises.  Each stage
of each student is checked in a process of its own (`stages/grading.py`), two or
more at a time, so that a program that hangs, or ends its process, costs nobody
else anything.  What is done is remembered in `build/grades`, so that a command
that was interrupted goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Final, NamedTuple

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from stages import jail
from stages.generate import generated, put
from stages.grading import TYPES, Outcome, Work, graded
from stages.manifest import HERE, REFERENCE, ROOT, exercises_by_file, stages
from stages.proof import add_files
from stages.report import DONE

MEMORY: Final = ROOT / "build" / "grades"
"""Where marks are remembered, by a hash of what they depend on."""

LARGEST: Final = 2**20
"""The most bytes that a student's file may have."""


class Options(NamedTuple):
    """How to grade.

    Attributes:
        numbers: the stages.
        with_proof: whether a stage that is right is proved as well.
        seconds: of processor time for the tests of a stage; a process that
            waits is stopped after three times as long.
        jobs: how many processes run at a time.
        again: whether to grade anew what was graded before.
        memory: where marks are remembered.
    """

    numbers: Sequence[int]
    with_proof: bool = False
    seconds: int = 20
    jobs: int = 0
    again: bool = False
    memory: Path = MEMORY


class Student(NamedTuple):
    """A folder that is graded.

    Attributes:
        name: what it is listed as.
        texts: the files with exercises, by their path below fx.
        problem: why there is nothing to grade, if so.
    """

    name: str
    texts: Mapping[str, str]
    problem: str = ""


class Mark(NamedTuple):
    """What one student has right in one stage.

    Attributes:
        signs: exercise -> its sign.
        told: exercise -> what is wrong with it.
        proof: "" if it was not tried, "proved", or what was found.
        copied: functions that are word for word the reference's.
        notes: what a person should know.
        shared: why the process was not isolated; "" if it was.
        seconds: of wall time.
    """

    signs: Mapping[str, str]
    told: Mapping[str, str]
    proof: str = ""
    copied: Sequence[str] = ()
    notes: Sequence[str] = ()
    shared: str = ""
    seconds: float = 0.0

    @property
    def right(self) -> int:
        """How many exercises are right."""
        return sum(sign == DONE for sign in self.signs.values())


class Row(NamedTuple):
    """One student.

    Attributes:
        student: the name.
        marks: stage -> what is right in it.
        problem: why there is nothing to grade, if so.
    """

    student: str
    marks: Mapping[int, Mark]
    problem: str = ""

    @property
    def right(self) -> int:
        """How many exercises are right."""
        return sum(mark.right for mark in self.marks.values())

    @property
    def seconds(self) -> float:
        """How long it took."""
        return sum(mark.seconds for mark in self.marks.values())

    @property
    def proof(self) -> str:
        """What the proofs say together; "" if none was tried."""
        said = [mark.proof for mark in self.marks.values()]
        if all(one == "proved" for one in said):
            return "proved"
        return next((one for one in said if one not in ("", "proved")), "")

    @property
    def notes(self) -> list[str]:
        """What a person should know, each with its stage."""
        copied = [one for mark in self.marks.values() for one in mark.copied]
        said = [self.problem] * bool(self.problem)
        if copied:
            said.append(f"{len(copied)} as in the reference: {copied[0]}")
        for number, mark in self.marks.items():
            said += [f"{number:02d}: {note}" for note in mark.notes]
        return said


# --- what students hand in -------------------------------------------------


def students(folders: Iterable[Path]) -> list[Student]:
    """The students whose folders these are, each by a name of its own."""
    found: dict[str, Student] = {}
    for folder in folders:
        one = _student(folder)
        name = one.name if one.name not in found else str(folder)
        found[name] = one._replace(name=name)
    return [*found.values()]


def _student(folder: Path) -> Student:
    """A student's files: of a clone, of `exercises/`, or of `fx/` alone."""
    whole = folder.resolve()
    named = whole.parent if whole.name in ("exercises", "fx") else whole
    name = named.parent.name if named.name == "exercises" else named.name
    if not folder.is_dir():
        return Student(name, {}, "no such folder")
    place = _place(folder)
    if place is None:
        return Student(name, {}, "there is no exercises/fx in it")
    texts, problems = {}, []
    for file in exercises_by_file():
        try:
            if (text := _read(place, file)) is not None:
                texts[file] = text
        except (OSError, ValueError) as error:
            problems.append(f"{file}: {error}")
    if not texts and not problems:
        problems.append("there are no exercises in it")
    return Student(name, texts, "; ".join(problems))


def _place(folder: Path) -> Path | None:
    """The folder of a student's fx.

    A clone has an fx of its own beside `exercises`, which is the reference.
    """
    if (folder / "exercises").is_dir() or (folder / "stages").is_dir():
        places = [folder / "exercises" / "fx"]
    else:
        places = [folder / "fx", folder]
    found = (one for one in places if one.is_dir() and not one.is_symlink())
    return next(found, None)


def _read(place: Path, file: str) -> str | None:
    """A file of a student; None if there is none.

    Raises:
        ValueError: it is a link, is very large, or is not text.
    """
    path = place / file
    if not path.exists() and not path.is_symlink():
        return None
    if not path.resolve().is_relative_to(place.resolve()):
        raise ValueError("leads out of the folder")
    if not path.is_file():
        raise ValueError("not a file")
    if path.stat().st_size > LARGEST:
        raise ValueError("larger than 1 MiB")
    return path.read_text(encoding="utf-8-sig")


# --- grading ---------------------------------------------------------------


def grade(
    folders: Sequence[Path], options: Options, console: Console
) -> list[Row]:
    """Grade folders side by side.

    Args:
        folders: of the students.
        options: how.
        console: where a bar shows how far it is.
    """
    found = students(folders)
    stop = threading.Event()
    jobs = options.jobs or _processors()
    with (
        tempfile.TemporaryDirectory(prefix="grades-") as name,
        _bar(console) as bar,
        ThreadPoolExecutor(jobs) as executor,
    ):
        base = Path(name).resolve() / "exercises" / "fx"
        for file, text in generated().items():
            put(base / file, text)
        course = _course(options)
        waiting: dict[Future[Mark], tuple[Student, int]] = {}
        for one in found:
            for number in options.numbers if one.texts else ():
                job = executor.submit(
                    _remembered, one, number, base, course, options, stop
                )
                waiting[job] = one, number
        task = bar.add_task("grading", total=len(waiting))
        marks: dict[tuple[str, int], Mark] = {}
        try:
            for job in as_completed(waiting):
                one, number = waiting[job]
                marks[one.name, number] = job.result()
                bar.update(task, advance=1, description=one.name[:20])
        except BaseException:
            stop.set()
            executor.shutdown(wait=False, cancel_futures=True)
            raise
    return [_row(one, options.numbers, marks) for one in found]


def _row(
    one: Student, numbers: Sequence[int], marks: Mapping[tuple[str, int], Mark]
) -> Row:
    """The row of a student; without files, everything is unwritten."""
    signs = {
        number: {piece.title: "·" for piece in stages()[number].pieces}
        for number in numbers
    }
    found = {
        number: marks.get((one.name, number))
        or Mark(signs[number], dict.fromkeys(signs[number], "to write"))
        for number in numbers
    }
    return Row(one.name, found, one.problem)


def _bar(console: Console) -> Progress:
    """The bar that shows how far it is."""
    return Progress(
        TextColumn("{task.description:20}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )


def _processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _course(options: Options) -> str:
    """A hash of what a mark depends on besides the student's files."""
    digest = hashlib.sha256(f"{options.with_proof} {options.seconds}".encode())
    folders = [REFERENCE, HERE]
    if options.with_proof:
        folders += [ROOT / "tests", ROOT / "docs"]
    add_files(digest, folders)
    return digest.hexdigest()


def _remembered(
    one: Student,
    number: int,
    base: Path,
    course: str,
    options: Options,
    stop: threading.Event,
) -> Mark:
    """The mark of a student in a stage, if possible from the memory.

    A mark is not remembered if the process was stopped: on a machine that is
    less busy it may be another one.
    """
    files = json.dumps([number, course, dict(one.texts)], sort_keys=True)
    key = hashlib.sha256(files.encode("utf-8", "replace")).hexdigest()
    path = options.memory / f"{key}.json"
    if path.is_file() and not options.again:
        return Mark(**json.loads(path.read_text(encoding="utf-8")))
    mark = _mark(one, number, base, options, stop)
    if mark.signs and not stop.is_set() and not _was_stopped(mark):
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{threading.get_ident()}")
        fresh.write_text(
            json.dumps(mark._asdict(), default=dict), encoding="utf-8"
        )
        fresh.replace(path)
    return mark


def _was_stopped(mark: Mark) -> bool:
    """Whether a process was stopped for the time it took."""
    return any(note.startswith("it was stopped") for note in mark.notes)


def _mark(
    one: Student,
    number: int,
    base: Path,
    options: Options,
    stop: threading.Event,
) -> Mark:
    """Check a stage of a student, and prove it if it is right."""
    began = time.monotonic()
    limits = jail.Limits(options.seconds)
    work = Work(base, one.texts, number, "", limits)
    outcome = graded(work, 3 * options.seconds, stop)
    titles = [piece.title for piece in stages()[number].pieces]
    signs = {title: outcome.signs.get(title, " ") for title in titles}
    told = {title: outcome.told.get(title, "not judged") for title in titles}
    told = {title: why for title, why in told.items() if signs[title] != DONE}
    notes, shared = [*outcome.notes, *outcome.refused], outcome.shared
    proved = ""
    if options.with_proof and not told:
        found = [*_proved(work, stop)]
        failures = [what for each in found for what in each.failures]
        ended = [note for each in found for note in each.notes]
        proved = "; ".join([*failures, *ended]) or "proved"
    took = round(time.monotonic() - began, 1)
    return Mark(signs, told, proved, outcome.copied, notes, shared, took)


def _proved(work: Work, stop: threading.Event) -> Iterator[Outcome]:
    """Run what proves a stage, until something is found."""
    limits = jail.Limits(300, memory=4096, file=64)
    for target in (*stages()[work.number].proof, TYPES):
        again = work._replace(target=target, limits=limits)
        found = graded(again, 600, stop)
        yield found
        if found.failures or found.notes:
            return
