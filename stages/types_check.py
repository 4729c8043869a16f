"""Runs mypy on the learner's files of a stage, in parallel with the tests.

mypy starts in a second process when the check begins, so that on two cores it
costs little time.  Its cache makes every run after the first quick.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Final, Self

from stages.checking import Mistake
from stages.functions import State
from stages.manifest import stages
from stages.tree import Tree


class TypesCheck:
    """A run of mypy, which may still be going on."""

    def __init__(self, tree: Tree, files: Sequence[str]) -> None:
        self._tree = tree
        # A file, because a pipe would fill up until somebody asks.
        self._said = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115
        self._run = subprocess.Popen(
            [sys.executable, "-m", "mypy", "--no-error-summary", *files],
            cwd=tree.root.parent,
            stdout=self._said,
            stderr=subprocess.STDOUT,
        )

    @classmethod
    def started(cls, tree: Tree, numbers: Sequence[int]) -> Self | None:
        """Start mypy on those files of some stages that have written functions.

        Returns:
            The run, or None if no function is written.
        """
        states = tree.states()
        files = {
            f"{tree.root.name}/{one.file}"
            for number in numbers
            for one in stages()[number].exercises
            if states[one.name] is State.WRITTEN
        }
        return cls(tree, sorted(files)) if files else None

    @property
    def is_finished(self) -> bool:
        """Whether mypy has ended, so that `ask` does not wait."""
        return self._run.poll() is not None

    def stop(self) -> None:
        """Kill mypy if it is still running."""
        if not self.is_finished:
            self._run.kill()
            self._run.wait()

    def ask(self) -> None:
        """Wait for mypy to finish.

        Raises:
            Mistake: mypy found errors; the picture is its output.
        """
        if self._run.wait() == 0:
            return
        self._said.seek(0)
        said = self._said.read()
        lines = [
            f"{self._tree.root.parent.name}/{line}"
            if re.match(r"[\w/]+\.py:", line)
            else line
            for line in said.splitlines()
        ]
        raise Mistake(
            "The code runs, but mypy finds fault with its types. Run it in "
            "exercises/ to see this again.",
            "\n".join(
                line for found in lines for line in (found, *cure(found))
            ),
        )


CURES: Final = (
    (
        r"Function is missing a type annotation|missing a return type",
        "annotate each argument and the result: `def f(node: Node) -> None:`",
    ),
    (
        r"Function is missing a type annotation for one or more",
        "annotate each argument: `def f(node: Node) -> None:`",
    ),
    (
        r'Need type annotation for "(?P<name>\w+)"',
        "an empty container does not say what goes in: "
        "`{name}: list[Node] = []`, with your own type",
    ),
    (
        r'Returning Any from function declared to return "(?P<type>[^"]+)"',
        "name the value and annotate it: `result: {type} = …; return result`",
    ),
    (
        r"Incompatible types in assignment "
        r'\(expression has type "(?P<was>[^"]+)", '
        r'variable has type "(?P<type>[^"]+)"',
        "the first assignment fixes the type. Annotate that one, "
        "`x: {type} | {was} = …`, or use a second name",
    ),
    (
        r'Item "None" of "[^"]+" has no attribute',
        "it may be None: ask `is not None` first, or `assert x is not None`",
    ),
    (
        r'"object" has no attribute "(?P<name>\w+)"',
        "its type says nothing of it: ask `isinstance`, or annotate where it "
        "comes from: `x: Node = …`",
    ),
    (
        r'Argument \d+ .*expected "(?P<type>[^"]+)"',
        "give it a {type}: convert the value, or ask `isinstance` before",
    ),
    (
        r"Missing type (arguments|parameters) for generic type",
        "say of what: `list[Node]`, `Callable[[Node], bool]`",
    ),
    (
        r"Statement is unreachable|Left operand .* is always",
        "by the types, this cannot happen: remove it, or correct the "
        "annotation that says so",
    ),
    (
        r'unused "type: ignore" comment',
        "the comment is not needed any more: remove it",
    ),
)
"""What mypy says, and what to do about it."""


def cure(line: str) -> list[str]:
    """What to do about a line of mypy; nothing if we do not know."""
    for said, todo in CURES:
        if found := re.search(said, line):
            return [f"    → {todo.format(**found.groupdict())}"]
    return []
