"""Runs checks from a program, each in a fresh process that starts quickly.

Two checks cannot share a process, because an imported `fx` stays imported.
Importing torch takes two seconds; so a server process imports torch and
compiles the library, without importing fx, and each check runs in a fork of
that process.  Nothing here needs the fork: with the start method `spawn`, which
Windows and macOS have, each process imports torch for itself, and a check
takes some seconds longer.  `STAGES_START_METHOD=spawn` asks for it elsewhere.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from typing import Final, NamedTuple

import pytest

from stages.course import SECONDS, Subject
from stages.manifest import HERE, ROOT, exercises, pieces
from stages.tree import Broken, Tree

PLAIN: Final = (
    "--color=no",
    "--assert=plain",
    *("-p", "no:cacheprovider"),
    # These two collect garbage three times, which with torch takes a second.
    *("-p", "no:unraisableexception"),
    *("-p", "no:threadexception"),
)
"""pytest's options if a program runs it: plain output, and no cache."""


SWITCH: Final = "STAGES_START_METHOD"
"""A variable of the environment that can ask for "spawn"."""


def start_method() -> str:
    """How the processes start: "forkserver", or "spawn" where that is usual.

    It is usual where it is Python's default, which `set_start_method` and
    SWITCH can change.  A fork on macOS may crash, although there is one.
    """
    usual, *others = multiprocessing.get_all_start_methods()
    chosen = multiprocessing.get_start_method(allow_none=True)
    asked = os.environ.get(SWITCH) or chosen or usual
    spawns = asked == "spawn" or "forkserver" not in (usual, *others)
    return "spawn" if spawns else "forkserver"


@contextmanager
def pool(workers: int = 2) -> Iterator[ProcessPoolExecutor]:
    """An executor that runs each job in a new process, with torch imported."""
    context = multiprocessing.get_context(start_method())
    context.set_forkserver_preload(["stages.warm"])
    with ProcessPoolExecutor(
        workers, context, _prepare, max_tasks_per_child=1
    ) as executor:
        yield executor


def process(target: Callable[..., None], args: Iterable[object]) -> BaseProcess:
    """A process that is not started, with torch imported where it can be."""
    if start_method() == "spawn":
        return multiprocessing.get_context("spawn").Process(
            target=target, args=args
        )
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["stages.warm"])
    return context.Process(target=target, args=args)


def _prepare() -> None:
    """Set before a job what `stages.warm` has set for forks."""
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"


# --- checks ----------------------------------------------------------------


class Job(NamedTuple):
    """A check to run.

    Attributes:
        tree: what is imported as fx, and which stages are under test.
        stages: the stages to check.
        exercise: check only this function or piece.
        tests: check only these, by their ids.
        first_failure: stop at the first failure.
        said: stop when a failure says this, however its lines are broken.
        seconds: how long one test may take before it is stopped.
    """

    tree: Tree
    stages: Sequence[int]
    exercise: str | None = None
    tests: Sequence[str] = ()
    first_failure: bool = False
    said: str = ""
    seconds: float = SECONDS


class Result(NamedTuple):
    """The result of a check.

    Attributes:
        status: pytest's exit status; 0 if all tests passed.
        signs: function, or title of a piece -> a sign for each of its tests.
        verdicts: the same -> one sign.
        failed: the tests that failed, with the explanation.
        told: function, or title of a piece -> what its first failed test says.
        stuck: the tests that were stopped, because they did not end.
        to_write: the tests that reached a stub.
        unmarked: the tests without an `exercise` mark.
        output: all that was printed.
    """

    status: int
    signs: dict[str, str]
    verdicts: dict[str, str]
    failed: dict[str, str]
    told: dict[str, str]
    stuck: list[str]
    to_write: list[str]
    unmarked: list[str]
    output: str

    @property
    def has_run(self) -> bool:
        """Whether tests were run."""
        return self.status in (
            pytest.ExitCode.OK,
            pytest.ExitCode.TESTS_FAILED,
        )

    def ran(self) -> Result:
        """This result, if tests were run.

        Raises:
            Broken: no tests were run; the message is what was printed.
        """
        if self.has_run:
            return self
        raise Broken(self.output.strip().removeprefix("ERROR: "))


def run_all(jobs: Iterable[Job], executor: ProcessPoolExecutor) -> list[Result]:
    """Run checks, some at a time, and wait for all of them.

    Raises:
        Broken: the code under test ended a process.
    """
    futures: list[Future[Result]] = [executor.submit(run, job) for job in jobs]
    try:
        return [future.result() for future in futures]
    except BrokenExecutor:
        raise Broken(
            "The code under test ended the whole process: it called os._exit, "
            "or Python itself crashed, because a recursion was too deep or "
            "memory ran out. `pytest stages/NN -v` names the test."
        ) from None


class _Until:
    """A plugin that ends a run when a failure has said something."""

    def __init__(self, said: str) -> None:
        self._said = flat(said)

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Remember the run."""
        self._session = session

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """End the run after this test, if it said so."""
        if report.failed and self._said in flat(str(report.longrepr)):
            self._session.shouldfail = "it was said"


def flat(text: str) -> str:
    """A text with each run of white space as one space."""
    return " ".join(text.split())


def run(job: Job) -> Result:
    """Run a check in this process, which must not have imported fx."""
    subject = Subject(job.tree, seconds=job.seconds)
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        until = [_Until(job.said)] if job.said else []
        status = pytest.main(_arguments(job), plugins=[subject, *until])
    verdicts = subject.verdicts
    titles = [piece.title for piece in pieces().values()]
    names = dict.fromkeys([*exercises(), *titles])
    return Result(
        int(status),
        {name: verdicts.signs(name) for name in names},
        {name: verdicts.of(name) for name in names},
        verdicts.failed,
        verdicts.told,
        verdicts.stuck,
        verdicts.to_write,
        verdicts.unmarked,
        said.getvalue(),
    )


def _arguments(job: Job) -> list[str]:
    """The command line of a check."""
    os.chdir(ROOT)
    paths = [str(HERE / f"{number:02d}") for number in job.stages]
    only = ["--exercise", job.exercise] if job.exercise else []
    stop = ["-x"] if job.first_failure else []
    return [*(job.tests or paths), *only, *stop, *PLAIN]
