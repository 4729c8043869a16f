"""Runs mypy on the learner's files of a stage, in parallel with the tests.

mypy starts in a second process when the check begins, so that on two cores it
costs little time.  Its cache makes every run after the first quick.
"""

from __future__ import annotations

import re
import subprocess
import sys
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
        self._run = subprocess.Popen(
            [sys.executable, "-m", "mypy", "--no-error-summary", *files],
            cwd=tree.root.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
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

    def stop(self) -> None:
        """Kill mypy if it is still running."""
        if self._run.poll() is None:
            self._run.kill()
            self._run.communicate()

    def ask(self) -> None:
        """Wait for mypy to finish.

        Raises:
            Mistake: mypy found errors; the picture is its output.
        """
        said, _ = self._run.communicate()
        if self._run.returncode == 0:
            return
        lines = [
            f"{self._tree.root.parent.name}/{line}"
            if re.match(r"[\w/]+\.py:", line)
            else line
            for line in said.splitlines()
        ]
        raise Mistake(
            "The code runs, but its types do not fit together. Run mypy in "
            "exercises/ to see this again.",
            "\n".join(lines),
        )
