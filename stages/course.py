"""The pytest plugin of the course: what `pytest stages/04` does.

`stages/plugin.py` imports it if the command line names a stage.  It does not
import fx itself, because the first `fx` that the process imports must be the
tree under test.

The stages named are under test, so nothing in them is borrowed from the
reference.  A test that reaches a stub is reported as *to write*, without a
traceback; a failed test is explained in a sentence, with the lines of the
learner that it came through.

PYTEST_DONT_REWRITE: pytest must not rewrite the asserts of this file, because
programs that run checks have imported it before pytest starts.
"""

from __future__ import annotations

import gc
import importlib
import re
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from stages import functions
from stages.checking import Overtime, no_limit, time_limit
from stages.functions import State
from stages.manifest import (
    EXERCISES,
    HERE,
    REFERENCE,
    ROOT,
    Exercise,
    exercises,
    pieces,
    stages,
)
from stages.report import (
    DONE,
    Verdicts,
    explain,
    header,
    is_whole,
    missing_stub,
    passed_through,
    summary,
    where_reached,
)
from stages.tree import Broken, Tree, import_all, install, problems
from stages.workspace import (
    edited_reference,
    is_told,
    lay_out,
    moved,
    note,
    note_checked,
    tell,
)

SECONDS: Final = 5.0
"""How long one test may take before it is stopped."""

CAPSTONES: Final = HERE / "capstones"
COURSE: Final = "course"
"""The name under which `_Course` is registered with pytest."""


class Subject:
    """The tree to check, and the outcomes of its tests.

    A program passes one to `pytest.main(plugins=…)` to have another tree than
    the learner's checked.

    Attributes:
        tree: what is imported as fx.
        verdicts: filled while the check runs.
        seconds: how long one test may take before it is stopped.
    """

    def __init__(self, tree: Tree, *, seconds: float = SECONDS) -> None:
        self.tree = tree
        self.verdicts = Verdicts()
        self.seconds = seconds


# --- options, and what is under test ---------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the course."""
    group = parser.getgroup("stages")
    group.addoption(
        "--reference",
        action="store_true",
        help="check fx/ itself, not exercises/fx",
    )
    group.addoption(
        "--exercise",
        metavar="NAME",
        help="check one exercise only, e.g. Link.prepend",
    )
    group.addoption(
        "--variant",
        type=int,
        metavar="SEED",
        help="check the capstone gradient with more operators, which the seed "
        "chooses, and lists at its top",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register the hooks of the course for the stages named.

    Raises:
        pytest.UsageError: the command or the tree makes a check impossible;
            the message is a paragraph for the learner.
    """
    if found := moved(config.invocation_params.dir):
        raise pytest.UsageError(found)
    if any(path.is_relative_to(CAPSTONES) for path in _paths(config)):
        _prepare_capstones(config)
        return
    numbers = _stages_named(config)
    if not numbers:
        return
    if config.getoption("dist", "no") != "no" or config.getoption(
        "numprocesses", None
    ):
        raise pytest.UsageError(
            "a stage is checked by one process: leave out -n and --dist "
            "(-n 0, if they come from PYTEST_ADDOPTS)"
        )
    subject = _subject(config, numbers)
    try:
        _prepare(subject)
    except (Broken, OSError) as error:
        raise pytest.UsageError(str(error)) from None
    config.option.reportchars = ""  # our summary says it all
    config.option.tbstyle = "native"  # the quickest: `explain` replaces it
    config.option.no_header = True
    # At the end it imports hypothesis, which no test of a stage uses.
    config.pluginmanager.unregister(name="hypothesispytest")
    config.pluginmanager.register(_Course(config, subject, numbers), COURSE)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Refuse to run tests of a stage with an `fx` that is not the learner's.

    Raises:
        pytest.UsageError: the command line names a stage of another checkout.
    """
    strays = [item for item in items if _exercises_of(item)]
    if strays and not config.pluginmanager.hasplugin(COURSE):
        raise pytest.UsageError(
            f"{strays[0].nodeid} checks what a learner writes, but this "
            f"command would check the reference with it. Name the stage and "
            f"nothing else, and use the .venv of the same checkout (this "
            f"one is {ROOT}):\n"
            f"    pytest stages/01    your exercises/fx\n"
            f"    pytest tests        the library"
        )


def _prepare_capstones(config: pytest.Config) -> None:
    """Register what checks the capstones.

    Raises:
        pytest.UsageError: the learner's fx cannot be imported, or something
            else is named beside a capstone.
    """
    if not all(path.is_relative_to(CAPSTONES) for path in _paths(config)):
        raise pytest.UsageError(
            "check the capstones alone, and not with others"
        )
    board = importlib.import_module("stages.capstones.board")
    try:
        board.configure(config)
    except Broken as error:
        raise pytest.UsageError(str(error)) from None


@pytest.hookimpl
def pytest_ignore_collect(
    collection_path: Path, config: pytest.Config
) -> bool | None:
    """Leave the capstones to those who name them."""
    named = [path.is_relative_to(CAPSTONES) for path in _paths(config)]
    if collection_path == CAPSTONES and not any(named):
        return True
    return None


def _paths(config: pytest.Config) -> list[Path]:
    """The paths on the command line."""
    return [_path(config, argument) for argument in config.args]


def _stages_named(config: pytest.Config) -> list[int]:
    """The numbers of the stages on the command line, in order.

    Raises:
        pytest.UsageError: a stage that does not exist, or something else
            beside a stage.
    """
    paths = _paths(config)
    inside = [path for path in paths if path.is_relative_to(HERE)]
    if not inside:
        return []
    if others := [path for path in paths if path not in inside]:
        raise pytest.UsageError(
            f"a stage checks exercises/fx, and {_short(others[0])} checks "
            f"fx/: one process can import only one of them. Run\n"
            f"    pytest {_short(inside[0])}\n    pytest {_short(others[0])}"
        )
    found: set[int] = set()
    for path in inside:
        found |= _numbers(path)
    return sorted(found)


def _path(config: pytest.Config, argument: str) -> Path:
    """The path in an argument like `stages/04/test_a.py::test_b`."""
    path = argument.partition("::")[0]
    return (config.invocation_params.dir / path).resolve()


def _short(path: Path) -> str:
    """A path relative to the project's root folder, if it is inside."""
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def _numbers(path: Path) -> set[int]:
    """The stages that a path inside stages/ names."""
    known = stages()
    parts = path.relative_to(HERE).parts
    if not parts:
        return set(known)
    if re.fullmatch(r"\d\d", parts[0]) and int(parts[0]) in known:
        return {int(parts[0])}
    number = int(parts[0]) if parts[0].isdecimal() else 0
    hint = f" Did you mean stages/{number:02d}?" if number in known else ""
    raise pytest.UsageError(
        f"there is no stage {parts[0]!r}: the stages are "
        f"stages/{min(known):02d} to stages/{max(known):02d}.{hint}"
    )


def _subject(config: pytest.Config, numbers: list[int]) -> Subject:
    """The tree to check: the caller's, the reference, or the learner's."""
    for plugin in config.pluginmanager.get_plugins():
        if isinstance(plugin, Subject):
            return plugin
    if config.getoption("--reference"):
        return Subject(Tree(REFERENCE, under_test=numbers))
    return Subject(Tree(EXERCISES / "fx", under_test=numbers))


def _prepare(subject: Subject) -> None:
    """Import the tree, if it can be checked.

    Raises:
        Broken: it cannot be checked; the message says why.
    """
    tree = subject.tree
    is_own = not tree.is_reference and tree.root == EXERCISES / "fx"
    if is_own:
        lay_out()
    found = [*problems(tree)]
    if is_own:
        note_checked(EXERCISES, max(tree.under_test))
        found += edited_reference()
    if found:
        raise Broken("\n\n".join(found))
    install(tree)
    gc.disable()
    try:
        importlib.import_module("torch")  # can be slow, so it is not timed
        with time_limit(2 * subject.seconds):
            import_all(tree)
    except Overtime as error:
        raise Broken(f"importing fx does not end: {error}") from None
    finally:
        gc.freeze()  # torch is large, and each collection would search it
        gc.enable()


# --- one run ---------------------------------------------------------------


class _Course:
    """The hooks of one run of pytest over some stages."""

    def __init__(
        self, config: pytest.Config, subject: Subject, numbers: list[int]
    ) -> None:
        self._config = config
        self._tree = subject.tree
        self._numbers = numbers
        self._verdicts = subject.verdicts
        self._seconds = subject.seconds
        self._left_out = False

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self) -> None:
        """Say what is under test."""
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.write_line(header(self._tree, self._numbers))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, items: list[pytest.Item]
    ) -> None:
        """Add, before all others, the checks that exercises are written."""
        wanted = self._config.getoption("--exercise")
        if wanted:
            self._keep_only(str(wanted), items)
        named = {name for item in items for name in _exercises_of(item)}
        order = [one for one in exercises().values() if one.name in named]
        first: list[pytest.Item] = []
        if not self._tree.is_reference:
            first += [_Written.of(session, one, self._tree) for one in order]
        items[:] = [*first, *items]
        # So that pytest counts them among those that it says it collected.
        ours = pytest.CollectReport("stages", "passed", None, [*first])
        self._config.hook.pytest_collectreport(report=ours)

    def _keep_only(self, name: str, items: list[pytest.Item]) -> None:
        """Drop the tests of other exercises.

        Raises:
            pytest.UsageError: no test checks an exercise of that name.
        """
        kept = [
            item
            for item in items
            if any(_is_named(full, name) for full in _exercises_of(item))
        ]
        if not kept:
            raise pytest.UsageError(f"no test here checks an exercise {name!r}")
        dropped = [item for item in items if item not in kept]
        self._config.hook.pytest_deselected(items=dropped)
        items[:] = kept

    def pytest_deselected(self) -> None:
        """Remember that the stage is not checked as a whole."""
        self._left_out = True

    def pytest_enter_pdb(self) -> None:
        """Lift the time limit for a person who debugs a test."""
        no_limit()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, None, None]:
        """Stop a test that does not end."""
        # Once one test was stopped, the next may well loop in the same place.
        stuck = bool(self._verdicts.stuck)
        with time_limit(self._seconds / 10 if stuck else self._seconds):
            yield

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Replace pytest's account of a failure by an explanation."""
        report = yield
        if call.excinfo is not None and not report.passed:
            report.outcome = "failed"  # also if the code skips its test
            error = call.excinfo.value
            if isinstance(error, Overtime):
                self._note_stuck(item)
            stub = missing_stub(error)
            report.user_properties.append(("to write", stub or ""))
            if stub:
                report.longrepr = f"to write: {stub}"
                self._note_waiting(item, stub, error)
            else:
                report.longrepr = explain(error, item, self._tree)
                through = passed_through(error, self._tree)
                report.user_properties.append(("through", through))
        if call.when == "call" or report.failed:
            self._verdicts.add(_exercises_of(item), item, report)
        return report

    def _note_stuck(self, item: pytest.Item) -> None:
        """Remember a test that did not end, and end the check at the second."""
        self._verdicts.stuck.append(item.nodeid)
        if len(self._verdicts.stuck) == 2:
            item.session.shouldfail = "two tests did not end"

    def _note_waiting(
        self, item: pytest.Item, stub: str, error: BaseException
    ) -> None:
        """Remember which written exercise reached a stub, and where."""
        unwritten, verdicts = stub.partition(": ")[2], self._verdicts
        through = passed_through(error, self._tree)
        place = where_reached(error, self._tree)
        for name in _exercises_of(item):
            if verdicts.signs(name).startswith(DONE):  # it is written
                verdicts.waits.setdefault(name, unwritten)
                same = [one.stub for one in pieces()[name].functions]
                if name in through and stub not in same:
                    told = f"{unwritten}, called from {place}"
                    verdicts.reached.setdefault(name, told)

    def pytest_report_teststatus(
        self, report: pytest.TestReport
    ) -> tuple[str, str, str] | None:
        """Name the outcome of a test: passed, failed, or to write."""
        if report.passed and report.when == "call":
            return "passed", "✓", "PASSED"
        if report.failed:
            if dict(report.user_properties).get("to write"):
                return "to write", "·", "TO WRITE"
            if report.nodeid in self._verdicts.blocked:
                return "because of another", "~", "FAILED"
            if report.nodeid in self._verdicts.many:
                return "more like these", "✗", "FAILED"
            return "failed", "✗", "FAILED"
        return None

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Remember the stages whose tests have passed."""
        whole = is_whole(self._verdicts, self._numbers, self._whole())
        if whole and not exitstatus and not self._tree.is_reference:
            for number in self._numbers:
                note(self._tree, number, "done")

    def _whole(self) -> bool:
        """Whether all tests of the stages named were to run."""
        return not self._left_out and all(
            _path(self._config, argument).is_dir()
            for argument in self._config.args
        )

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, exitstatus: int
    ) -> None:
        """Print the state of each exercise, and what to do next."""
        if exitstatus == pytest.ExitCode.INTERRUPTED:
            terminalreporter.write_line("The check was interrupted.")
            return
        whole = self._whole()
        for line in summary(self._verdicts, self._tree, self._numbers, whole):
            terminalreporter.write_line(line)
        for line in self._sights():
            terminalreporter.write_line(line)

    def _sights(self) -> Iterator[str]:
        """What exercises that are right can do now, each told once."""
        of = self._verdicts.of
        if self._tree.is_reference or self._tree.borrowed:
            return
        for number in self._numbers:
            for piece in stages()[number].pieces:
                signs = {of(one.name) for one in piece.functions}
                if signs != {DONE} or is_told(self._tree, piece.title):
                    continue
                # What it needs besides may still be a stub.
                with suppress(Exception, Overtime), time_limit(self._seconds):
                    see = importlib.import_module(f"stages.{number:02d}.see")
                    lines = see.SEE[piece.title]().splitlines()
                    yield ""
                    yield f"see what {piece.title} can do now:"
                    yield from (f"    {line}" for line in lines)
                    tell(self._tree, piece.title)


def _is_named(full: str, name: str) -> bool:
    """Whether a name, as a person types it, means this function or its piece.

    The end of the function's name is enough: `prepend`.
    """
    if name.lower() == pieces()[full].title.lower():
        return True
    return f".{full}".lower().endswith(f".{name}".lower())


def _exercises_of(item: pytest.Item) -> Sequence[str]:
    """The names of the exercises that a test checks."""
    marks = item.iter_markers("exercise")
    return [str(name) for mark in marks for name in mark.args]


class _Written(pytest.Item):
    """Checks, before the tests run, that one exercise is written."""

    one: Exercise
    tree: Tree

    @classmethod
    def of(cls, session: pytest.Session, one: Exercise, tree: Tree) -> _Written:
        """Make the item."""
        name = f"{one.qualname} is written"
        place = f"exercises/fx::{name}"  # what pytest lists it under
        item = cls.from_parent(session, name=name, nodeid=place)
        assert isinstance(item, _Written)
        item.one, item.tree = one, tree
        item.add_marker(pytest.mark.exercise(one.name))
        return item

    def runtest(self) -> None:
        """Raise the stub's error if the function is not written."""
        if self.one.name in self.tree.borrowed:
            return
        found = functions.state(self.tree.function(self.one))
        if found is not State.WRITTEN:
            raise NotImplementedError(self.one.stub)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where the function is defined."""
        line = self.tree.function(self.one).lineno
        return self.tree.root / self.one.file, line - 1, self.name


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop importing fx from the tree: pytest may run again in this process."""
    for finder in [*sys.meta_path]:
        if type(finder).__module__ == "stages.tree":
            sys.meta_path.remove(finder)
