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
from typing import Self

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
            "\n".join(lines),
        )
