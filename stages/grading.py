"""Grades one stage of one student, in a process of its own.

`graded` runs in the process that grades: it starts another one, waits for it
and kills it with all that it has started.  `_graded` runs in that other one.
Only the student's files that have exercises are used, as texts; all other files
of fx, and all tests, are those of this project.  The functions of other stages
are borrowed, so that a mistake in one stage costs nothing in the next.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from stages import functions, jail, proof
from stages.functions import State
from stages.generate import put
from stages.manifest import EXERCISES, REFERENCE, ROOT, exercises, stages
from stages.processes import process
from stages.report import DONE
from stages.running import Job, Result, run
from stages.tree import LOADER, Broken, Tree
from stages.types_check import TypesCheck

TYPES: Final = "types"
"""What is run for a proof besides the entries of `proof` in stage.toml."""

SECONDS: Final = 2.0
"""How long one test may take before it is stopped."""

MOST: Final = 100_000
"""The most characters of a result that are read."""

SECRET: Final = (
    REFERENCE,
    EXERCISES,
    ROOT / "docs",
    ROOT / ".git",
    ROOT / "stages" / "capstones",
)
"""Where solutions are."""

ALARMS: Final = {
    int(signal.SIGKILL): "it was killed for the time or memory it took",
    int(getattr(signal, "SIGXCPU", 0)): "it computed for too long",
    int(signal.SIGSEGV): "Python crashed",
}


class Work(NamedTuple):
    """What one process does.

    Attributes:
        base: the folder of fx with all exercises unwritten.
        texts: the student's files, by their path below it.
        number: the stage.
        target: what to run: "" for the stage's tests, else an entry of its
            `proof`, or `TYPES`.
        limits: of the process.
    """

    base: Path
    texts: Mapping[str, str]
    number: int
    target: str
    limits: jail.Limits

    @property
    def tree(self) -> Tree:
        """What is imported as fx."""
        others = [
            one.name for one in exercises().values() if one.stage != self.number
        ]
        return Tree(self.base, [self.number], others, self.texts)


class Outcome(NamedTuple):
    """What came of it.

    Attributes:
        signs: exercise -> its sign.
        told: exercise -> what its first failed test says.
        failures: what a target of the proof found.
        copied: functions that are word for word the reference's.
        notes: what a person should know: why it could not run, how it ended.
        refused: what the process wanted to do and was not allowed to.
        shared: why the process was not isolated; "" if it was.
        ran: whether the process came to its end.
    """

    signs: Mapping[str, str] = MappingProxyType({})
    told: Mapping[str, str] = MappingProxyType({})
    failures: Sequence[str] = ()
    copied: Sequence[str] = ()
    notes: Sequence[str] = ()
    refused: Sequence[str] = ()
    shared: str = ""
    ran: bool = True


def graded(work: Work, seconds: float, stop: threading.Event) -> Outcome:
    """Run one process to its end, or for some seconds.

    Args:
        work: what it does.
        seconds: of wall time; then it is killed.
        stop: set when nobody waits for the result any more.
    """
    with tempfile.TemporaryDirectory(
        prefix="grade-", ignore_cleanup_errors=True
    ) as name:
        desk = Path(name).resolve()
        other = process(_graded, (work, desk))
        other.start()
        late = not _ended(other, seconds, stop)
        _kill(other.pid)
        other.kill()
        other.join()
        found = _read(desk)
        code = other.exitcode or 0
    notes = [*found.notes]
    if late:
        notes.append(f"it was stopped after {seconds:.0f} s")
    elif code or not found.ran:
        signal_number = -code if code < 0 else 256 - code
        ended = f"it ended its own process (exit status {code})"
        notes.append(ALARMS.get(signal_number, ended))
    return found._replace(notes=notes)


def _ended(process: BaseProcess, seconds: float, stop: threading.Event) -> bool:
    """Wait for a process; whether it has ended by itself."""
    end = time.monotonic() + seconds
    while process.is_alive() and time.monotonic() < end and not stop.is_set():
        process.join(0.2)
    return not process.is_alive()


def _kill(leader: int | None) -> None:
    """Kill the session that a process has begun."""
    if leader and hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)


def _read(desk: Path) -> Outcome:
    """What a process has written before it ended."""
    refused = _text(desk / "refused").splitlines()[:3]
    shared = _text(desk / "shared")
    try:
        raw = json.loads(_text(desk / "result"))
        found = Outcome(**raw)
    except (TypeError, ValueError):
        found = Outcome(ran=False)
    return found._replace(refused=refused, shared=shared)


def _text(path: Path) -> str:
    """The beginning of a file; "" if there is none."""
    if not path.is_file() or path.is_symlink():
        return ""
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(MOST)


# --- in a process of its own -----------------------------------------------


def _graded(work: Work, desk: Path) -> None:
    """Isolate this process, run what is to be run, and write the result."""
    put(desk / "shared", jail.isolate(desk))
    jail.silence()
    (desk / "tmp").mkdir()
    os.environ["TMPDIR"] = tempfile.tempdir = str(desk / "tmp")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(desk / "tmp" / "inductor")
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.environ["OMP_NUM_THREADS"] = "1"
    sys.dont_write_bytecode = True
    refused = (desk / "refused").open("a", encoding="utf-8", buffering=1)
    if work.target != TYPES:
        jail.limit(work.limits)
        jail.Guard(
            desk,
            work.base,
            SECRET,
            LOADER.exec_module.__code__,
            lambda what: refused.write(f"{what}\n"),
            starts=bool(work.target),
        ).install()
    try:
        found = _run(work, desk)
    except Broken as error:
        found = Outcome(notes=[f"{error}".partition("\n")[0]])
    (desk / "result").write_text(
        json.dumps(found._asdict(), default=dict), encoding="utf-8"
    )
    os._exit(0)


def _run(work: Work, desk: Path) -> Outcome:
    """Run the tests of a stage, or one target of its proof."""
    if work.target == TYPES:
        return Outcome(failures=_types(work, desk))
    if work.target:
        _, _, failures, _ = proof.run_target(
            work.tree, work.number, work.target
        )
        told = [f"{one.what}: {_first(one.told)}" for one in failures]
        return Outcome(failures=told)
    copied = [*_copied(work)]
    result = run(Job(work.tree, [work.number], seconds=SECONDS))
    if not result.has_run:
        said = result.output.strip().removeprefix("ERROR: ")
        return Outcome(notes=[_first(said) or "no test was run"])
    return _judged(result, work.number)._replace(copied=copied)


def _judged(result: Result, number: int) -> Outcome:
    """The exercises of a stage as its tests have judged them."""
    titles = [piece.title for piece in stages()[number].pieces]
    signs = {title: result.verdicts[title] for title in titles}
    told: dict[str, str] = {}
    for explanation in result.failed.values():
        for title in titles:
            if f"hint: python -m stages hint {title}\n" in f"{explanation}\n":
                told.setdefault(title, _first(explanation))
    for title, sign in signs.items():
        if sign != DONE and title not in told:
            told[title] = "to write" if sign == "·" else "not judged"
    return Outcome(signs=signs, told=told)


def _first(text: str) -> str:
    """The first line of a text, not too long."""
    return text.partition("\n")[0][:300]


def _copied(work: Work) -> list[str]:
    """The functions of the stage that are written as the reference's are."""
    return [
        one.qualname
        for one in stages()[work.number].exercises
        if functions.state(work.tree.function(one)) is State.WRITTEN
        and ast.dump(work.tree.function(one))
        == ast.dump(Tree(REFERENCE).function(one))
    ]


def _types(work: Work, desk: Path) -> list[str]:
    """What mypy finds in the files of the stage."""
    root = desk / "exercises" / "fx"
    for path in sorted(work.base.rglob("*")):
        if path.is_file():
            name = path.relative_to(work.base).as_posix()
            text = path.read_text(encoding="utf-8")
            put(root / name, work.texts.get(name, text))
    settings = (EXERCISES / "pyproject.toml").read_text(encoding="utf-8")
    put(desk / "exercises" / "pyproject.toml", settings)
    check = TypesCheck.started(Tree(root, [work.number]), [work.number])
    if check is None:
        return []
    try:
        check.ask()
    except AssertionError as error:
        return [f"types: {line}" for line in f"{error}".splitlines()[1:3]]
    return []
