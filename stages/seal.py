"""The seal of a stage: the library's own tests, on the learner's code.

A stage is done when its tests pass.  They teach, and some wrong program will
always pass them.  So `python -m stages seal 04` also runs on the learner's
tree what the library itself has to pass: random programs, programs beside
torch.fx, real networks, what the page says that its examples print, and mypy.

`seal` in stage.toml lists what is run for a stage:

- `tests/…`: a file of tests;
- `page`: the demo and the predictions of the stage's page;
- `tests.reliability.…`: a part of the reliability search, with a fixed seed.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import multiprocessing
import os
import re
import runpy
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from itertools import zip_longest
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple

import pytest
from rich.console import Console

from stages.checking import Overtime, no_limit, time_limit
from stages.manifest import HERE, ROOT, stages
from stages.predict import questions
from stages.report import exercise_at, passed_through, told_of
from stages.running import PLAIN, pool
from stages.tree import Tree, install

SECONDS: Final = 30.0
"""How long one test, page or part may take before it is stopped."""

SEED: Final = 0
"""The seed of a reliability part, so that a seal says the same twice."""

WIDTH: Final = 110
"""How long a line of a failure may be."""

USUAL: Final = {
    "types": 30.0,
    "page": 5.0,
    "test_zoo": 30.0,
    "test_programs": 40.0,
    "test_attacks": 15.0,
    "test_isolation": 15.0,
    "reliability": 15.0,
}
"""A part of a name -> the seconds where the tests of a stage take TESTS."""

TESTS: Final = 4.0


class Failure(NamedTuple):
    """Something that the learner's code gets wrong.

    Attributes:
        what: the test, or what was tried.
        told: at most five lines about it.
        through: the exercises whose lines the error came through; if there
            are none, those of the stage that the check calls.
    """

    what: str
    told: Sequence[str]
    through: Sequence[str] = ()


def seal(
    tree: Tree, number: int, tests: float, console: Console
) -> Failure | None:
    """Run what seals a stage, two parts at a time, up to the first failure.

    What failed last time is run first, then the entries of stage.toml in
    their order, which is that of what most often finds something.

    Args:
        tree: the learner's.
        number: the stage, whose own tests pass.
        tests: the seconds that they have just taken, which say how fast this
            machine is.
        console: where one sees what runs, since when, and about how long.

    Returns:
        What the first part to fail has found.
    """
    wrong = tree.root.parent / ".seal-failed"
    last = wrong.read_text(encoding="utf-8") if wrong.is_file() else ""
    parts = [*stages()[number].seal, "types"]
    parts.sort(key=lambda part: part != last)
    guess = max(1.0, tests / TESTS) * sum(map(usual, parts)) / 2
    console.print(f"  {len(parts)} parts, about {guess:.0f} s (Ctrl-C ends it)")
    began = time.monotonic()
    with _ending_at_once() as executor, console.status("") as status:
        left: dict[Future[Failure | None], str] = {
            executor.submit(run_part, tree, number, part): part
            for part in parts
        }
        while left:
            now = [part for job, part in left.items() if job.running()][:2]
            so_far = f"{time.monotonic() - began:.0f} s"
            status.update(
                f"{', '.join(now)}    {so_far} of about {guess:.0f} s"
            )
            ended, _ = wait(left, 0.5, FIRST_COMPLETED)
            for job in ended:
                part = left.pop(job)
                failure = _result(job)
                sign, count = "✗" if failure else "✓", len(parts) - len(left)
                console.print(
                    f"  {sign} {count} of {len(parts)}, {so_far}: {part}"
                )
                if failure is not None:
                    wrong.write_text(part, encoding="utf-8")
                    return failure
    return None


def usual(part: str) -> float:
    """The seconds of a part where the tests of a stage take TESTS."""
    return next((took for name, took in USUAL.items() if name in part), 6.0)


def _result(job: Future[Failure | None]) -> Failure | None:
    """What a part has found."""
    try:
        return job.result()
    except BrokenExecutor:
        return Failure("the process", ["The code ended it."])


@contextlib.contextmanager
def _ending_at_once() -> Iterator[ProcessPoolExecutor]:
    """Two processes, which at the end of the block are not waited for."""
    before = {*multiprocessing.active_children()}
    with pool() as executor:
        try:
            yield executor
        finally:
            executor.shutdown(wait=False, cancel_futures=True)
            for child in {*multiprocessing.active_children()} - before:
                child.kill()


def told(failure: Failure) -> Iterator[str]:
    """A failure as lines for the learner."""
    yield f"--- {failure.what}"
    yield from failure.told
    if failure.through:
        yield f"look at: {', '.join(failure.through)}"


# --- in a process of its own -----------------------------------------------


def run_part(tree: Tree, number: int, part: str) -> Failure | None:
    """Run one entry of `seal`, or mypy; what it finds."""
    os.chdir(ROOT)
    tree = tree._replace(under_test=[number])
    if part == "types":
        return _types(tree, number)
    install(tree)
    if "/" in part:
        return _run_tests(tree, number, part)
    if part == "page":
        checks = _page(number)
    else:
        search = _search(part)
        checks = [(part, lambda: next(search))]
    found = (_run(tree, number, *check) for check in checks)
    return next(filter(None, found), None)


def _types(tree: Tree, number: int) -> Failure | None:
    """Run mypy on the files of the stage in which the learner writes."""
    ones = stages()[number].exercises
    files = sorted({f"{tree.root.name}/{one.file}" for one in ones})
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", *files],
        cwd=tree.root.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode == 0:
        return None
    lines = (run.stdout + run.stderr).splitlines()
    places = [re.match(r"fx/([\w/]+\.py):(\d+): error", one) for one in lines]
    found = (exercise_at(tree, at[1], int(at[2])) for at in places if at)
    through = [*dict.fromkeys(name for name in found if name)]
    what = f"types: (cd {tree.root.parent.name}; python -m mypy)"
    return Failure(what, lines[:5], through)


def _run_tests(tree: Tree, number: int, part: str) -> Failure | None:
    """Run a file of the library's tests."""
    teller, said = _Teller(tree, number), io.StringIO()
    options = [*(one for one in PLAIN if one != "--assert=plain"), "-vv"]
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = pytest.main([part, "--exitfirst", *options], plugins=[teller])
    if status != pytest.ExitCode.OK and teller.failure is None:
        return Failure(part, said.getvalue().splitlines()[-5:])
    return teller.failure


class _Teller:
    """A plugin that limits each test, and keeps what a failure says."""

    def __init__(self, tree: Tree, number: int) -> None:
        self._tree = tree
        self._number = number
        self.failure: Failure | None = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, None, None]:
        """Stop a test that does not end."""
        with time_limit(SECONDS):
            yield

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Keep a failure."""
        report = yield
        if report.failed and call.excinfo is not None:
            error = call.excinfo.value
            self.failure = _failure(
                item.nodeid, error, item.runtest, self._tree, self._number
            )
        return report


def _failure(
    what: str,
    error: BaseException,
    check: Callable[[], object],
    tree: Tree,
    number: int,
) -> Failure:
    """What an error says in five lines, and the function to look at."""
    said, *rest = told_of(error, tree)
    telling = [line for line in rest if re.match(r"\s*([-+] |At index)", line)]
    places = [line for line in rest if line.startswith("at ")]
    lines = [said, *telling[:2], *places[-1:], *_test_line(error)]
    through = passed_through(error, tree)[-1:]
    through = through or _called_by(check, tree, number)
    return Failure(what, [line[:WIDTH] for line in lines], through)


def _called_by(
    check: Callable[[], object], tree: Tree, number: int
) -> list[str]:
    """The exercises of a stage that a check calls, if it is run once more."""
    known = {
        (str(tree.root / one.file), one.qualname): one.name
        for one in stages()[number].exercises
    }
    called: dict[str, None] = {}

    def on_call(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        name = code.co_qualname.replace(".<locals>", "")
        one = known.get((code.co_filename, name))
        if event == "call" and one is not None:
            called[one] = None

    said = contextlib.redirect_stderr(io.StringIO())
    tried = contextlib.suppress(Exception, Overtime)
    with said, tried, time_limit(SECONDS):
        sys.setprofile(on_call)
        threading.setprofile(on_call)
        try:
            check()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    return [*called]


def _test_line(error: BaseException) -> list[str]:
    """The line of a test that an error came from."""
    return [
        f"test: {Path(frame.filename).relative_to(ROOT)}:{frame.lineno}: "
        f"{frame.line}"
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(ROOT / "tests")
    ][-1:]


def _run(
    tree: Tree, number: int, what: str, check: Callable[[], str]
) -> Failure | None:
    """Run a check that gives a complaint, or "" if all is well."""
    try:
        # Programs that fail on purpose print tracebacks there.
        said = contextlib.redirect_stderr(io.StringIO())
        with said, time_limit(SECONDS):
            complaint = check()
    except (Exception, Overtime) as error:
        no_limit()
        return _failure(what, error, check, tree, number)
    if not complaint:
        return None
    lines = [line[:WIDTH] for line in complaint.splitlines()[:5]]
    return Failure(what, lines, _called_by(check, tree, number))


def _search(part: str) -> Iterator[str]:
    """What a part of the reliability search finds, or "".

    If it finds something, it tries that case alone once more.
    """
    search = importlib.import_module(part).PART
    for place, tried in enumerate(search.run(SEED, search.share)):
        if tried.ours:
            again = iter(search.run(SEED, search.share))
            for _ in range(place):
                next(again)
            yield f"{tried.ours}\n{tried.case}"
            next(again)
    yield ""


def _page(number: int) -> list[tuple[str, Callable[[], str]]]:
    """The demo and the predictions of a stage's page."""
    demo = HERE / f"{number:02d}" / "demo.py"
    expected = demo.with_suffix(".txt").read_text(encoding="utf-8")
    programs = [
        (f"stages.{number:02d}.demo.main", expected),
        *((one.program, one.answer) for one in questions(number)),
    ]
    return [(name, _printing(name, text)) for name, text in programs]


def _printing(name: str, expected: str) -> Callable[[], str]:
    """A check that a program of the page prints what the page says."""
    module, _, function = name.rpartition(".")
    path = ROOT / f"{module.replace('.', '/')}.py"

    def check() -> str:
        said = io.StringIO()
        names = runpy.run_path(str(path), run_name=path.stem)
        with contextlib.redirect_stdout(said):
            names[function]()
        both = said.getvalue().strip(), expected.strip()
        yours, theirs = ([*map(str.rstrip, x.splitlines())] for x in both)
        for one, other in zip_longest(yours, theirs, fillvalue="(nothing)"):
            if one != other:
                return (
                    f"It prints something else than the page says.\n"
                    f"yours:    {one}\nexpected: {other}"
                )
        return ""

    return check
