"""A plugin of pytest: a run may leave out no test that is marked `newest`.

    pytest -p tests.versions.marked tests/library …

The mark says that a test compares with texts or lists of the newest torch.fx,
so that it is left out beside any other.  It would also be left out beside a
torch that is newer than what fx was tested with, and nothing would be red.  So
each test that pytest found with the mark must have run, and at least one for
each place in the source that has the mark, also in files that this run was not
asked for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import pytest

MARK: Final = "newest"
FOLDERS: Final = ("tests", "stages", "docs")


def marked_in(text: str) -> Iterator[str]:
    """What a file marks: `f`, `Class`, `Class::f`, or `""` for the file.

    A mark counts for the function or class that it decorates, be it on one of
    the parameters; elsewhere, as in `pytestmark`, it counts for the file.
    """
    tree = ast.parse(text)
    used = {node for node in ast.walk(tree) if _is_mark(node)}
    for name, definition in _definitions(tree.body, ""):
        inside = {
            node
            for decorator in definition.decorator_list
            for node in ast.walk(decorator)
        }
        if used & inside:
            yield name
            used -= inside
    if used:
        yield ""


def _is_mark(node: ast.AST) -> bool:
    """Is it `….mark.newest`?"""
    return isinstance(node, ast.Attribute) and ast.unparse(node).endswith(
        f"mark.{MARK}"
    )


def _definitions(
    body: Iterable[ast.stmt], prefix: str
) -> Iterator[tuple[str, ast.FunctionDef | ast.ClassDef]]:
    """The functions and classes of a file, named as pytest names them."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield prefix + node.name, node
        if isinstance(node, ast.ClassDef):
            yield from _definitions(node.body, f"{prefix}{node.name}::")


def marked_places(root: Path) -> Iterator[str]:
    """Each place with the mark in the tests' files: `tests/x/test_y.py::f`."""
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("test_*.py")):
            text = file.read_text(encoding="utf-8")
            if f"mark.{MARK}" in text:
                for name in marked_in(text):
                    path = file.relative_to(root).as_posix()
                    yield f"{path}::{name}".removesuffix("::")


def not_run(
    places: Iterable[str], collected: Iterable[str], ran: Iterable[str]
) -> list[str]:
    """The places and collected tests that did not run."""
    done = set(ran)
    missing = set(collected) - done
    return sorted(missing | (set(places) - _places(done | missing)))


def _places(tests: Iterable[str]) -> set[str]:
    """Where tests are: `a.py`, `a.py::C` and `a.py::C::f` for a method."""
    parts = [test.partition("[")[0].split("::") for test in tests]
    return {
        "::".join(part[:length])
        for part in parts
        for length in range(1, len(part) + 1)
    }


class Count:
    """What is found and what runs, also in the processes of xdist.

    Attributes:
        root: the folder whose files may have the mark.
        collected: the tests with the mark that pytest found.
        ran: those that ran to their end.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.collected: set[str] = set()
        self.ran: set[str] = set()

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Note a test before any other plugin can leave it out."""
        if item.get_closest_marker(MARK):
            self.collected.add(item.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that ran, wherever it did."""
        run = report.when == "call" and report.outcome != "skipped"
        if run and MARK in report.keywords:
            self.ran.add(report.nodeid)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """Take over what a process of xdist has found."""
        output: dict[str, list[str]] = getattr(node, "workeroutput", {})
        self.collected.update(output.get(MARK, ()))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Make the run fail if a marked test was left out."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[MARK] = sorted(self.collected)
        elif self.missing() and not session.exitstatus:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> None:
        """Say how many ran, and name those that did not."""
        missing = self.missing()
        terminalreporter.write_line(
            f"{len(self.ran)} tests marked {MARK} ran, {len(missing)} did not",
            red=bool(missing),
        )
        for test in missing:
            terminalreporter.write_line(f"  did not run: {test}")

    def missing(self) -> list[str]:
        """The marked tests and places that did not run."""
        return not_run(marked_places(self.root), self.collected, self.ran)


def pytest_configure(config: pytest.Config) -> None:
    """Begin to count."""
    config.pluginmanager.register(
        Count(config.rootpath), "tests.versions.marked.Count"
    )
