"""Proves that a stage is done: the library's own tests, on the learner's code.

The tests of a stage teach, and some wrong program will always pass them.  So
when they pass, the tests that the library itself has to pass are run on the
learner's tree: random programs, programs beside torch.fx, real networks, and
what the stage's page says that its examples print.

`proof` in stage.toml lists what is run for a stage:

- `tests/…`: a file of tests;
- `page`: the demo and the predictions of the stage's page;
- `tests.reliability.…`: a part of the reliability search, with a fixed seed.

A proof is remembered by a hash of everything that it depends on.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib
import io
import json
import multiprocessing
import os
import runpy
import sys
import textwrap
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import (
    BrokenExecutor,
    Future,
    ProcessPoolExecutor,
    as_completed,
)
from contextlib import nullcontext
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple, Self, TypeAlias

import pytest
from rich.console import Console
from rich.progress import Progress

from stages.limits import Overtime, no_limit, time_limit
from stages.manifest import HERE, ROOT, stages
from stages.processes import PLAIN, pool
from stages.questions import questions
from stages.report import passed_through, told_of
from stages.tree import Tree, install

SECONDS: Final = 30.0
"""How long one test, page or part may take before it is stopped."""

SEED: Final = 0
"""The seed of a reliability part, so that a proof says the same twice."""

SHOWN: Final = 2
"""How many failures of each file are told."""

LINES: Final = 24
"""How many lines of a failure are told."""

USUAL: Final = {
    "page": 2.0,
    "test_zoo": 20.0,
    "test_programs": 25.0,
    "test_attacks": 10.0,
    "test_isolation": 10.0,
    "reliability": 10.0,
}
"""A part of a target's name -> the seconds that it takes on a quiet machine.

It is a guess for the first proof; after that, this machine's times count.
"""

START: Final = 3.0
"""The seconds until the first part begins."""

SIDES: Final = (
    "    (What your code gives is left of `==`, what it should is right.)"
)
"""How the library's tests write their comparisons."""


class Failure(NamedTuple):
    """Something that the learner's code gets wrong.

    Attributes:
        what: the test, or what was tried.
        told: the explanation.
        through: the exercises whose lines the error came through; if there
            are none, those of the stage that the check calls.
    """

    what: str
    told: str
    through: Sequence[str] = ()


def prove_stage(
    tree: Tree,
    number: int,
    say: Callable[[str], object],
    console: Console | None = None,
) -> list[Failure]:
    """Run what proves a stage, two files at a time, up to the first failure.

    What failed last time is run first, then the entries of stage.toml in
    their order, which is that of what most often finds something.

    Args:
        tree: the learner's.
        number: the stage, whose own tests pass.
        say: prints a line of progress.
        console: where a bar shows how long it will take; by default none.

    Returns:
        What the first part to fail has found; nothing if the stage is done.

    Cost: at most a minute on two cores; nothing if it was proved before.
    """
    key, memory = _key(tree, number), tree.root.parent / ".proofs"
    if _remembers(memory, key):
        return []
    times = Times.read(tree.root.parent / ".proof-times")
    targets = times.ordered(stages()[number].proof)
    say(f"  {len(targets)} parts, about {times.expected(targets):.0f} s")
    began = time.monotonic()
    bar = Progress(
        *Progress.get_default_columns(), console=console, transient=True
    )
    with _ending_at_once() as executor, bar if console else nullcontext():
        task = bar.add_task("proving", total=times.work(targets))
        jobs: dict[Future[Proved], str] = {
            executor.submit(
                run_target, tree._replace(under_test=[number]), number, target
            ): target
            for target in targets
        }
        for count, job in enumerate(as_completed(jobs), 1):
            try:
                target, tried, failures, took = job.result()
            except BrokenExecutor:
                return [Failure("proof", "The code ended the whole process.")]
            times.note(target, took, is_wrong=bool(failures))
            bar.advance(task, times.usual(target))
            sign = "✗" if failures else "✓"
            say(
                f"  {sign} {count} of {len(targets)}, "
                f"{time.monotonic() - began:.0f} s: {target} ({tried})"
            )
            if failures:
                return failures
    with memory.open("a", encoding="utf-8") as file:
        file.write(f"{key}\n{_functions_key(tree, number)}\n")
    return []


def is_done(tree: Tree, number: int) -> bool:
    """Whether a stage was proved with the functions that it has now.

    What the learner has changed elsewhere since does not count.
    """
    return _remembers(
        tree.root.parent / ".proofs", _functions_key(tree, number)
    )


def _remembers(memory: Path, key: str) -> bool:
    """Whether a key stands in the file of what was proved."""
    return (
        memory.is_file() and key in memory.read_text(encoding="utf-8").split()
    )


def _functions_key(tree: Tree, number: int) -> str:
    """A hash of the functions of a stage."""
    digest = hashlib.sha256()
    for one in stages()[number].exercises:
        digest.update(ast.dump(tree.function(one)).encode())
    return f"{number:02d}:{digest.hexdigest()}"


@contextlib.contextmanager
def _ending_at_once() -> Iterator[ProcessPoolExecutor]:
    """Two processes, which at the end of the block are not waited for."""
    before = {*multiprocessing.active_children()}
    with pool() as executor:
        yield executor
        executor.shutdown(wait=False, cancel_futures=True)
        for child in {*multiprocessing.active_children()} - before:
            child.kill()


class Times:
    """How long the parts of proofs took here, and which failed last.

    Args:
        path: where it is remembered.
        known: part -> seconds.
        wrong: the parts that failed when they were last run.
    """

    def __init__(
        self, path: Path, known: dict[str, float], wrong: list[str]
    ) -> None:
        self._path, self._known, self._wrong = path, known, wrong

    @classmethod
    def read(cls, path: Path) -> Self:
        """What is remembered in a file, if it is there and can be read."""
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            return cls(path, dict(found["seconds"]), list(found["wrong"]))
        except (OSError, ValueError, LookupError, TypeError):
            return cls(path, {}, [])

    def ordered(self, targets: Sequence[str]) -> list[str]:
        """What failed last time first, the others in their order."""
        return sorted(targets, key=lambda one: one not in self._wrong)

    def usual(self, target: str) -> float:
        """The seconds that a part takes, as far as one can know."""
        guess = next(
            (took for part, took in USUAL.items() if part in target), 5.0
        )
        return self._known.get(target, guess)

    def work(self, targets: Sequence[str]) -> float:
        """The seconds of all parts together."""
        return sum(map(self.usual, targets))

    def expected(self, targets: Sequence[str]) -> float:
        """The seconds until all are through, two at a time."""
        longest = max(map(self.usual, targets))
        return max(longest, self.work(targets) / 2) + START

    def note(self, target: str, took: float, *, is_wrong: bool) -> None:
        """Remember how long a part took, and whether it failed."""
        self._known[target] = round(took, 1)
        self._wrong = [one for one in self._wrong if one != target]
        self._wrong += [target] * is_wrong
        found = {"seconds": self._known, "wrong": self._wrong}
        self._path.write_text(json.dumps(found, indent=1), encoding="utf-8")


def told(number: int, failures: Sequence[Failure]) -> Iterator[str]:
    """What a proof found, as lines for the learner."""
    for failure in failures:
        yield ""
        yield f"--- {failure.what}"
        yield failure.told
        if failure.through:
            text = f"look at: {', '.join(failure.through)}"
            yield textwrap.fill(text, 79, subsequent_indent=" " * 9)
    yield ""
    yield (
        f"Stage {number:02d} is not done yet: its exercises pass their own "
        f"tests, but the library's tests above fail with your code."
    )


def _key(tree: Tree, number: int) -> str:
    """A hash of the tree, the reference, the tests, and what runs them."""
    digest = hashlib.sha256(f"{number} {sys.version}".encode())
    torch = sys.modules.get("torch")
    digest.update(str(getattr(torch, "__version__", "")).encode())
    folders = (tree.root, tree.reference, ROOT / "tests", HERE, ROOT / "docs")
    add_files(digest, folders)
    return digest.hexdigest()


def add_files(digest: hashlib._Hash, folders: Iterable[Path]) -> None:
    """Add to a hash what a check reads in some folders."""
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".py", ".toml", ".md", ".txt"):
                digest.update(str(path.relative_to(folder)).encode())
                digest.update(path.read_bytes())


# --- in a process of its own -----------------------------------------------


Proved: TypeAlias = tuple[str, str, list[Failure], float]
"""A part of a proof, how much was tried, what failed, and the seconds."""


def run_target(tree: Tree, number: int, target: str) -> Proved:
    """Run one entry of `proof`."""
    began = time.monotonic()
    os.chdir(ROOT)
    install(tree)
    if "/" in target:
        tried, found = _run_tests(tree, number, target)
    elif target == "page":
        tried, found = _run_all(tree, number, _page(number))
    else:
        search = _search(target)
        tried, found = _run_all(tree, number, [(target, lambda: next(search))])
    return target, tried, found, time.monotonic() - began


def _run_tests(
    tree: Tree, number: int, target: str
) -> tuple[str, list[Failure]]:
    """Run a file of the library's tests."""
    teller, said = _Teller(tree, number), io.StringIO()
    options = [*(one for one in PLAIN if one != "--assert=plain"), "-vv"]
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = pytest.main(
            [target, f"--maxfail={SHOWN}", *options], plugins=[teller]
        )
    if status != pytest.ExitCode.OK and not teller.failures:
        teller.failures.append(Failure(target, said.getvalue()[-2000:]))
    return f"{teller.count} tests", teller.failures


class _Teller:
    """A plugin that limits each test, and keeps explanations of failures."""

    def __init__(self, tree: Tree, number: int) -> None:
        self._tree = tree
        self._number = number
        self.count = 0
        self.failures: list[Failure] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(
        self, item: pytest.Item
    ) -> Generator[None, None, None]:
        """Count the test, and stop it if it does not end."""
        self.count += 1
        with time_limit(SECONDS):
            yield

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Explain a failure."""
        report = yield
        if report.failed and call.excinfo is not None:
            error = call.excinfo.value
            said = told_of(error, self._tree)
            if len(said) > LINES:
                said = [*said[:LINES], "…"]
            lines = [*said, *_test_lines(error)]
            through = passed_through(error, self._tree)[-1:] or _called_by(
                item.runtest, self._tree, self._number
            )
            self.failures.append(
                Failure(item.nodeid, "\n".join(lines), through)
            )
        return report


def _called_by(
    test: Callable[[], object], tree: Tree, number: int
) -> list[str]:
    """The exercises of a stage that a check calls, if it is run once more.

    Args:
        test: what failed, but with no error in the learner's lines.
        tree: the learner's.
        number: the stage.
    """
    known = {
        (str(tree.root / one.file), one.qualname): one.name
        for one in stages()[number].exercises
    }
    called: dict[str, None] = {}

    def note(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        name = code.co_qualname.replace(".<locals>", "")
        one = known.get((code.co_filename, name))
        if event == "call" and one is not None:
            called[one] = None

    said = contextlib.redirect_stderr(io.StringIO())
    tried = contextlib.suppress(Exception, Overtime)
    with said, tried, time_limit(SECONDS):
        sys.setprofile(note)
        threading.setprofile(note)
        try:
            test()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    return [*called]


def _test_lines(error: BaseException) -> list[str]:
    """The line of a test that an error came from, and which side is whose."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(ROOT / "tests")
    ]
    return [
        line
        for frame in frames[-1:]
        for line in (
            f"test: {Path(frame.filename).relative_to(ROOT)}:{frame.lineno}",
            f"    {frame.line}",
            *([SIDES] if " == " in f"{frame.line}" else []),
        )
    ]


def _run_all(
    tree: Tree, number: int, checks: Sequence[tuple[str, Callable[[], str]]]
) -> tuple[str, list[Failure]]:
    """Run checks that give a complaint, or "" if all is well."""
    found: list[Failure] = []
    for what, check in checks:
        try:
            # Programs that fail on purpose print tracebacks there.
            said = contextlib.redirect_stderr(io.StringIO())
            with said, time_limit(SECONDS):
                complaint = check()
        except (Exception, Overtime) as error:
            no_limit()
            lines = "\n".join(told_of(error, tree))
            through = passed_through(error, tree)[-1:]
            found.append(Failure(what, lines, through))
        else:
            if complaint:
                called = _called_by(check, tree, number)
                found.append(Failure(what, complaint, called))
    return f"{len(checks)} check{'s' * (len(checks) != 1)}", found[:SHOWN]


def _search(target: str) -> Iterator[str]:
    """What a part of the reliability search finds, or "".

    If it finds something, it tries that case alone once more.
    """
    part = importlib.import_module(target).PART
    for place, tried in enumerate(part.run(SEED, part.share)):
        if tried.ours:
            again = iter(part.run(SEED, part.share))
            for _ in range(place):
                next(again)
            yield f"{tried.ours}\n{tried.case}"
            next(again)
    yield ""


def _page(number: int) -> list[tuple[str, Callable[[], str]]]:
    """The demo and the predictions of a stage's page."""
    demo = HERE / f"{number:02d}" / "demo.py"
    expected = demo.with_suffix(".txt").read_text(encoding="utf-8")
    checks = [
        (str(demo.relative_to(ROOT)), lambda: _printed(demo, "main", expected))
    ]
    for one in questions(number):
        check = _prediction_check(one.program, one.answer)
        checks.append((one.program, check))
    return checks


def _prediction_check(target: str, answer: str) -> Callable[[], str]:
    """A check that a program of the page prints what the page says."""
    module, _, function = target.rpartition(".")
    path = ROOT / f"{module.replace('.', '/')}.py"
    return lambda: _printed(path, function, answer)


def _printed(path: Path, function: str, expected: str) -> str:
    """A complaint if a function of a program prints something else."""
    said = io.StringIO()
    names = runpy.run_path(str(path), run_name=path.stem)
    with contextlib.redirect_stdout(said):
        names[function]()
    yours = [line.rstrip() for line in said.getvalue().strip().splitlines()]
    if yours == [line.rstrip() for line in expected.strip().splitlines()]:
        return ""
    return "\n".join(
        [
            f"{path.relative_to(ROOT)}, {function}, prints something else "
            f"than the page says.",
            "yours:",
            *(f"    {line}" for line in yours),
            "expected:",
            *(f"    {line}" for line in expected.strip().splitlines()),
        ]
    )
