"""The check of a capstone: whose program runs, and how good its results are."""

from __future__ import annotations

import functools
import importlib.util
import sys
import time
import traceback
from collections.abc import Callable, Generator
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple, TypeAlias

import pytest
import torch

from stages.capstones.gradient import variant
from stages.manifest import EXERCISES, HERE, REFERENCE, ROOT
from stages.report import explain, header
from stages.tree import Tree, import_all, install

Program: TypeAlias = Any
"""A module that a learner has written, with whatever is in it."""

FOLDER: Final = HERE / "capstones"
OWN: Final = EXERCISES / "capstones"
"""Where the learner's programs are."""

BOARD: Final = "capstone board"
"""The name under which a `Board` is registered with pytest."""


class Row(NamedTuple):
    """One measurement of both programs; less is better.

    Attributes:
        what: what was measured, and on which program.
        yours: the learner's result.
        ours: that of the solution in the repository.
        unit: of both.
    """

    what: str
    yours: float
    ours: float
    unit: str

    @property
    def said(self) -> str:
        """The row as the learner reads it."""
        part = self.yours / self.ours - 1 if self.ours else 0.0
        word = "worse" if part > 0 else "better"
        same = 0.5 <= part + 1 <= 2 if self.unit == "ms" else abs(part) < 5e-4
        told = "the same" if same else f"{abs(part):.1%} {word}"
        numbers = f"{self.yours:12,.4g} {self.ours:12,.4g} {self.unit:6}"
        return f"  {self.what:34} {numbers} {told}"


class Board:
    """Hooks and fixtures of a run of pytest over the capstones.

    Args:
        tree: what is imported as fx; it is the learner's, with every function
            borrowed that is not written.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self.rows: list[Row] = []

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Say what is under test."""
        told = session.config.pluginmanager.get_plugin("terminalreporter")
        if told is not None:
            told.write_line(header(self._tree, []))
            seed = session.config.getoption("--variant")
            if seed is not None:
                told.write_line(variant.told(seed))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, items: list[pytest.Item]
    ) -> None:
        """Ask once for each program that is not written, in place of tests."""
        if self._tree.is_reference:
            return
        names = dict.fromkeys(item.path.parent.name for item in items)
        missing = [name for name in names if not (OWN / f"{name}.py").is_file()]
        items[:] = [
            *(_ToWrite.from_parent(session, name=name) for name in missing),
            *(one for one in items if one.path.parent.name not in missing),
        ]

    @pytest.fixture
    def board(self) -> Board:
        """This board, to note measurements."""
        return self

    @pytest.fixture
    def yours(self, request: pytest.FixtureRequest) -> Program:
        """The learner's program; with --reference, ours."""
        name = request.path.parent.name
        path = OWN / f"{name}.py"
        return _ours(name) if self._tree.is_reference else _loaded(name, path)

    @pytest.fixture
    def ours(self, request: pytest.FixtureRequest) -> Program:
        """The solution in the repository."""
        return _ours(request.path.parent.name)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Replace pytest's account of a failure by an explanation."""
        report = yield
        if call.excinfo is not None and report.failed:
            error = call.excinfo.value
            told = [explain(error, item, self._tree), *_own_lines(error)]
            report.longrepr = "\n".join(told)
        return report

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> None:
        """Print what was measured, and whose program is better."""
        if self.rows:
            terminalreporter.write_line("")
            heads = f"{'yours':>12} {'ours':>12}"
            terminalreporter.write_line(f"  {'less is better':34} {heads}")
            terminalreporter.write_line(
                "  (a time between half of ours and twice ours is the same)"
            )
        for row in self.rows:
            terminalreporter.write_line(row.said)


class _ToWrite(pytest.Item):
    """Stands for the tests of a program that is not written."""

    def runtest(self) -> None:
        """Say what is to be written."""
        _loaded(self.name, OWN / f"{self.name}.py")

    def reportinfo(self) -> tuple[Path, None, str]:
        """Where it is to be written."""
        return OWN / f"{self.name}.py", None, f"{self.name} is written"


def configure(config: pytest.Config) -> None:
    """Prepare a run over capstones: import fx, and register a `Board`.

    Raises:
        Broken: the learner's fx cannot be imported.
    """
    own = Tree(EXERCISES / "fx")
    tree = Tree(REFERENCE) if config.getoption("--reference") else own
    install(tree)
    import_all(tree)
    config.pluginmanager.register(Board(tree), BOARD)
    if not config.option.maxfail:  # one mistake may fail fifty tests
        config.option.maxfail = 3


def timed(
    yours: Callable[[], object], ours: Callable[[], object]
) -> tuple[float, float]:
    """The milliseconds of processor time of two calls.

    They take turns, because whatever else the computer does should disturb
    both alike: three times, and for 0.1 seconds if they are short.  The best
    counts.  Torch has one thread, because threads that wait count as working.
    """
    took: tuple[list[float], list[float]] = [], []
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    end = time.process_time() + 0.1
    try:
        while len(took[0]) < 3 or time.process_time() < end:
            for work, times in zip((yours, ours), took, strict=True):
                began = time.process_time()
                work()
                times.append(1000 * (time.process_time() - began))
    finally:
        torch.set_num_threads(threads)
    return min(took[0]), min(took[1])


@functools.cache
def _ours(name: str) -> Program:
    """The solution of a capstone."""
    return _loaded(name, FOLDER / "solutions" / f"{name}.py")


def _loaded(name: str, path: Path) -> ModuleType:
    """A program from its file.

    Raises:
        AssertionError: there is no such file.
    """
    if not path.is_file():
        raise AssertionError(
            f"to write: exercises/capstones/{name}.py. What it must define, "
            f"and what it is checked for: python -m stages read {name}"
        )
    # pickle and dataclasses look it up
    unique = f"capstone_{name}" if path.parent == OWN else f"solution_{name}"
    spec = importlib.util.spec_from_file_location(unique, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _own_lines(error: BaseException) -> list[str]:
    """The last lines of the learner's program that an error came through."""
    lines: list[str] = []
    for frame in traceback.extract_tb(error.__traceback__):
        path = Path(frame.filename)
        if path.is_relative_to(OWN):
            place = path.relative_to(ROOT).as_posix()
            lines += [f"at {place}:{frame.lineno}, in {frame.name}"]
            lines += [f"    {frame.line}"]
    return lines[-6:]
