"""`python -m stages grade FOLDER…`: what students have right, by exercise.

Of each folder only the files are read in which there are exercises; all other
files, and all tests, are those of this project.  Each stage of each student is
checked in a process and a copy of its own, so that a program that hangs, or
ends its process, costs nobody else anything.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import multiprocessing
import os
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from rich.console import Console
from rich.progress import track

from stages import functions, guard, proof
from stages.generate import generated, put
from stages.manifest import (
    EXERCISES,
    HERE,
    REFERENCE,
    ROOT,
    exercises,
    exercises_by_file,
    stages,
)
from stages.processes import process
from stages.report import DONE, TO_WRITE
from stages.running import Job, run
from stages.tree import LOADER, Broken, Tree, reference_source
from stages.types_check import TypesCheck

MEMORY: Final = ROOT / "build" / "grades"
"""Where marks are remembered, by a hash of what they depend on."""

SECRET: Final = (
    REFERENCE,
    EXERCISES,
    *(ROOT / name for name in ("docs", ".git", "stages/capstones")),
)
"""Where solutions are."""

LARGEST: Final = 2**20
"""The most bytes that a file of a student may have."""

Texts: TypeAlias = Mapping[str, str]
"""The files with exercises, by their path below fx."""


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


class Mark(NamedTuple):
    """What one student has right in one stage.

    Attributes:
        told: exercise -> what is wrong with it; "" if nothing is.
        notes: what a person should know.
        proof: "" if it was not tried, "proved", or what was found.
    """

    told: Mapping[str, str]
    notes: Sequence[str] = ()
    proof: str = ""

    @property
    def right(self) -> int:
        """How many exercises are right."""
        return sum(not why for why in self.told.values())

    @property
    def is_right(self) -> bool:
        """Whether all is right that was asked for."""
        return self.right == len(self.told) and self.proof in ("", "proved")


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
    def notes(self) -> list[str]:
        """What a person should know, each with its stage."""
        return [self.problem] * bool(self.problem) + [
            f"{number:02d}: {note}"
            for number, mark in self.marks.items()
            for note in (*mark.notes, mark.proof)
            if note
        ]


# --- what students hand in -------------------------------------------------


def _handed_in(folder: Path) -> tuple[Texts, str]:
    """A student's files, and what is wrong with them.

    The folder is a clone, `exercises/`, or `fx/`.  A clone has an fx of its
    own beside `exercises`, which is the reference.
    """
    if (folder / "exercises").is_dir() or (folder / "stages").is_dir():
        places = [folder / "exercises" / "fx"]
    else:
        places = [folder / "fx", folder]
    found = [one for one in places if one.is_dir() and not one.is_symlink()]
    if not found:
        there = "there is no exercises/fx in it"
        return {}, there if folder.is_dir() else "there is no such folder"
    texts, problems = {}, []
    root = found[0].resolve()
    for file in exercises_by_file():
        path = root / file
        if not path.is_file():
            continue
        try:
            if not path.resolve().is_relative_to(root):
                problems.append(f"{file}: leads out of the folder")
            elif path.stat().st_size > LARGEST:
                problems.append(f"{file}: larger than 1 MiB")
            else:
                texts[file] = path.read_text(encoding="utf-8-sig")
        except (OSError, ValueError) as error:
            problems.append(f"{file}: {error}")
    if not texts and not problems:
        problems.append("there are no exercises in it")
    return texts, "; ".join(problems)


def _name(folder: Path, others: Iterable[str]) -> str:
    """What a folder is listed as: the name of the clone."""
    whole = folder.resolve()
    while whole.name in ("exercises", "fx"):
        whole = whole.parent
    return str(folder) if whole.name in others else whole.name


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
    rows: list[tuple[str, str, dict[int, Future[Mark]]]] = []
    course = _course(options)
    before = {*multiprocessing.active_children()}
    with ThreadPoolExecutor(options.jobs or os.cpu_count()) as executor:
        for folder in folders:
            texts, problem = _handed_in(folder)
            name = _name(folder, [other for other, _, _ in rows])
            jobs = {
                number: executor.submit(_mark, texts, number, course, options)
                for number in options.numbers
            }
            rows.append((name, problem, jobs))
        waiting = [job for _, _, jobs in rows for job in jobs.values()]
        try:
            done = as_completed(waiting)
            for job in track(
                done, "grading", len(waiting), console=console, transient=True
            ):
                job.result()
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            for child in {*multiprocessing.active_children()} - before:
                child.kill()
            raise
    return [
        Row(name, {number: job.result() for number, job in jobs.items()}, why)
        for name, why, jobs in rows
    ]


def _course(options: Options) -> str:
    """A hash of what a mark depends on besides the student's files."""
    digest = hashlib.sha256(f"{options.with_proof} {options.seconds}".encode())
    tested = [ROOT / "tests", ROOT / "docs"] * options.with_proof
    proof.add_files(digest, [REFERENCE, HERE, *tested])
    return digest.hexdigest()


def _mark(texts: Texts, number: int, course: str, options: Options) -> Mark:
    """The mark of a student in a stage, if possible from the memory.

    A mark is remembered if the process came to its end: on a machine that is
    less busy it may be another one.
    """
    titles = [piece.title for piece in stages()[number].pieces]
    if not texts:
        return Mark(dict.fromkeys(titles, "to write"))
    files = json.dumps([number, course, dict(texts)], sort_keys=True)
    key = hashlib.sha256(files.encode("utf-8", "replace")).hexdigest()
    path = options.memory / f"{key}.json"
    if path.is_file() and not options.again:
        return Mark(**json.loads(path.read_text(encoding="utf-8")))
    with tempfile.TemporaryDirectory(
        prefix="grade-", ignore_cleanup_errors=True
    ) as name:
        desk = Path(name).resolve()
        _copy(desk, texts, number)
        found = checked(desk, number, "", options.seconds)
        told = {**dict.fromkeys(titles, "not judged"), **found.told}
        notes = [*_same_as_ours(texts, number), *found.notes]
        proved = ""
        if options.with_proof and not any(told.values()):
            wrong = next(_refuted(desk, number), ())
            proved = "; ".join(wrong) or "proved"
    mark = Mark(told, notes, proved)
    if found.told:
        put(path, json.dumps(mark._asdict()))
    return mark


_PARSING: Final = threading.Lock()


def _copy(desk: Path, texts: Texts, number: int) -> None:
    """Lay out an fx with a student's files, for the check of one stage.

    A file of another stage is left out if it cannot be borrowed for.
    """
    for file, stub in generated().items():
        ones = exercises_by_file().get(file, ())
        is_own = any(one.stage == number for one in ones)
        text = texts.get(file, stub)
        if not is_own and _shapes(text, file) != _shapes(stub, file):
            text = stub
        put(desk / "exercises" / "fx" / file, text)
    settings = (EXERCISES / "pyproject.toml").read_text(encoding="utf-8")
    put(desk / "exercises" / "pyproject.toml", settings)


def _shapes(text: str, file: str) -> list[str]:
    """The signatures of a file's exercises; none if one cannot be found.

    Up to Python 3.12, two threads that parse at once may end in a SystemError.
    """
    errors = SyntaxError, ValueError, LookupError
    with _PARSING, contextlib.suppress(*errors):
        return [
            functions.signature(functions.function(ast.parse(text), one))
            for one in (e.qualname for e in exercises_by_file().get(file, ()))
        ]
    return []


def _same_as_ours(texts: Texts, number: int) -> list[str]:
    """A note about functions that are word for word the reference's."""
    with _PARSING:
        same = [
            one.qualname
            for one in stages()[number].exercises
            if f"\n{reference_source(one)}" in texts.get(one.file, "")
        ]
    note = f"{len(same)} of {len(stages()[number].exercises)} functions as in"
    return [f"{note} the reference"] * bool(same)


def _refuted(desk: Path, number: int) -> Iterator[Sequence[str]]:
    """What the library's tests, and then mypy, find wrong in a stage."""
    for target in stages()[number].proof:
        if notes := checked(desk, number, target, 300).notes:
            yield notes
    types = TypesCheck.started(_tree(desk, number), [number])
    if types is not None:
        try:
            types.ask()
        except AssertionError as error:
            yield [f"types: {line}" for line in f"{error}".splitlines()[1:3]]


# --- one process -----------------------------------------------------------


def checked(desk: Path, number: int, target: str, seconds: int) -> Mark:
    """Run the tests of a stage, or one entry of its `proof`, in a process.

    Args:
        desk: the folder with the copy.
        number: the stage.
        target: the entry; "" for the tests.
        seconds: of processor time; it is killed after three times as long.
    """
    (desk / "result").unlink(missing_ok=True)
    other = process(_check, (desk, number, target, seconds))
    other.start()
    other.join(3 * seconds)
    is_late = other.is_alive()
    other.kill()
    other.join()
    # What the library's tests are refused, they do without.
    refused = [] if target else _said(desk / "refused").splitlines()
    notes = [*dict.fromkeys(refused)][:3]
    with contextlib.suppress(ValueError, TypeError):
        told, more = json.loads(_said(desk / "result"))
        return Mark(told, [*notes, *more])
    ended = f"it was stopped after {3 * seconds} s"
    if not is_late:
        ended = f"it ended its own process (exit status {other.exitcode}), or "
        ended += "was killed for the time or memory it took"
    return Mark({}, [*notes, ended])


def _said(path: Path) -> str:
    """What a process has written into a file; "" if there is none."""
    if not path.is_file() or path.is_symlink():
        return ""
    return path.read_text(encoding="utf-8", errors="replace")[: 2**17]


def _tree(desk: Path, number: int) -> Tree:
    """A student's fx, in which all other stages are borrowed."""
    others = [one.name for one in exercises().values() if one.stage != number]
    return Tree(desk / "exercises" / "fx", [number], others)


def _check(desk: Path, number: int, target: str, seconds: int) -> None:
    """Limit this process, run what is to be run, and write the result."""
    (desk / "tmp").mkdir(exist_ok=True)
    os.environ["TMPDIR"] = tempfile.tempdir = str(desk / "tmp")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(desk / "tmp" / "inductor")
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.environ["OMP_NUM_THREADS"] = "1"
    for number_of_output in (0, 1, 2):
        os.dup2(os.open(os.devnull, os.O_RDWR), number_of_output)
    tree = _tree(desk, number)
    refused = (desk / "refused").open("w", encoding="utf-8", buffering=1)
    guard.limit(seconds, 4096 if target else 2048)
    guard.Guard(
        desk,
        tree.root,
        SECRET,
        LOADER.exec_module.__code__,
        lambda what: refused.write(f"{what}\n"),
        starts=bool(target),
    ).install()
    try:
        found = _proved(tree, target) if target else _tested(tree)
    except Broken as error:
        found = {}, [f"{error}".partition("\n")[0]]
    (desk / "result").write_text(json.dumps(found), encoding="utf-8")
    os._exit(0)


Found: TypeAlias = tuple[dict[str, str], list[str]]
"""Exercise -> what is wrong with it; notes."""


def _proved(tree: Tree, target: str) -> Found:
    """Run an entry of a stage's proof."""
    (number,) = tree.under_test
    _, _, failures, _ = proof.run_target(tree, number, target)
    lines = [f"{one.what}: {one.told}".partition("\n")[0] for one in failures]
    return {}, lines


def _tested(tree: Tree) -> Found:
    """Run the tests of a stage."""
    (number,) = tree.under_test
    result = run(Job(tree, [number], seconds=2.0)).ran()
    told: dict[str, str] = {}
    for piece in stages()[number].pieces:
        sign = result.verdicts[piece.title]
        why = "to write" if sign == TO_WRITE else "not judged"
        why = result.told.get(piece.title, why)[:300]
        told[piece.title] = "" if sign == DONE else why
    return told, []
