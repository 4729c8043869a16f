"""A learner, for tests: a folder of exercises and what one does with it."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple, Self

from stages import functions
from stages.course import SECONDS
from stages.generate import generated
from stages.manifest import REFERENCE, exercises, find_function
from stages.running import Job, Result, run
from stages.tree import Tree
from stages.workspace import Workspace


class Learner(NamedTuple):
    """Somebody's `exercises` folder, and processes to check it in."""

    folder: Path
    executor: ProcessPoolExecutor

    @classmethod
    def new(cls, folder: Path, executor: ProcessPoolExecutor) -> Self:
        """A folder in which nothing is written yet."""
        for name, text in generated().items():
            path = folder / "fx" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return cls(folder, executor)

    @property
    def work(self) -> Workspace:
        """The folder as the tools see it."""
        return Workspace(self.folder)

    def file(self, name: str) -> Path:
        """A file of the learner's fx."""
        return self.folder / "fx" / name

    def tree(self, *stages: int) -> Tree:
        """What is imported, with some stages under test."""
        return Tree(self.folder / "fx", under_test=stages)

    def check(
        self,
        *stages: int,
        exercise: str | None = None,
        seconds: float = SECONDS,
    ) -> Result:
        """`pytest stages/NN …`, in a process of its own."""
        job = Job(self.tree(*stages), stages, exercise, seconds=seconds)
        return self.executor.submit(run, job).result()

    def edit(self, name: str, was: str, becomes: str) -> None:
        """Replace a text that stands in a file once."""
        path = self.file(name)
        text = path.read_text(encoding="utf-8")
        assert text.count(was) == 1, (was, text.count(was))
        path.write_text(text.replace(was, becomes), encoding="utf-8")

    def write(self, name: str, was: str = "", becomes: str = "") -> None:
        """Write an exercise as the reference has it, but for one text."""
        one = find_function(name)
        given = (REFERENCE / one.file).read_text(encoding="utf-8")
        source = functions.source_of(given, one.qualname)
        assert not was or source.count(was) == 1, (was, source)
        source = source.replace(was, becomes) if was else source
        self.put(name, source)

    def put(self, name: str, source: str) -> None:
        """Write an exercise, the whole function."""
        one = find_function(name)
        path = self.file(one.file)
        text = path.read_text(encoding="utf-8")
        path.write_text(
            functions.with_source(text, one.qualname, source), encoding="utf-8"
        )

    def body(self, name: str, body: str) -> None:
        """Write an exercise's body below its docstring."""
        one = find_function(name)
        path = self.file(one.file)
        text = path.read_text(encoding="utf-8")
        source = functions.source_of(text, one.qualname)
        stub = f'raise NotImplementedError("{one.stub}")'
        assert stub in source
        self.put(name, source.replace(stub, body))

    def write_all(self, names: Iterable[str] | None = None) -> None:
        """Write many exercises, or all, as the reference has them."""
        for name in exercises() if names is None else names:
            self.write(name)
