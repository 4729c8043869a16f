"""Counts what one must read for a stage: its file, and all that it imports.

    python -m tests.checks.closure      prints the table
    python -m tests.checks.closure fx/graph.py      lists the files of one

A file that nobody needs to understand should not have to be read either.  The
numbers are lines of code, without docstrings and comments; an `__init__.py`
has none.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from stages.manifest import stages
from tests.checks.floors import imports
from tests.checks.sources import Source, library


class Reading(NamedTuple):
    """What one must read to understand something.

    Attributes:
        most: the most lines of code that it may take.
        goal: the lines that it should take one day.
    """

    most: int
    goal: int


MOST: Final[Mapping[str, Reading]] = {
    "fx/graph.py": Reading(1_981, 1_981),
    "fx/proxy.py": Reading(2_580, 2_580),
    "fx/tracing/tracer.py": Reading(3_509, 3_509),
    "fx/graph_module.py": Reading(2_588, 2_588),
    "fx/interpreter.py": Reading(4_491, 4_491),
    "fx/subgraph_rewriter.py": Reading(5_628, 5_628),
    "fx/passes/reinplace.py": Reading(5_537, 5_537),
    "all cores": Reading(8_067, 8_067),
    "all files of stages": Reading(9_300, 9_300),
}
"""A file, the core files of all stages together, or all of their files -> the
lines."""


def closure(names: Sequence[str], sources: Sequence[Source]) -> list[Source]:
    """Some files, and all files of fx/ that they import, also for types."""
    by_path = {str(source.path): source for source in sources}
    by_module = {source.module: source for source in sources}
    modules = frozenset(by_module)
    todo = [by_path[name] for name in names]
    found = {str(source.path): source for source in todo}
    while todo:
        for one in imports(todo.pop(), modules):
            source = by_module.get(one.module)
            if source and not source.is_init and str(source.path) not in found:
                found[str(source.path)] = source
                todo.append(source)
    return [found[path] for path in sorted(found)]


def names_of(row: str) -> list[str]:
    """The files that a row of the table is about."""
    if row == "all files of stages":
        return [str(one.path) for one in library() if one.stage is not None]
    if row != "all cores":
        return [row]
    return [f"fx/{file}" for stage in stages().values() for file in stage.core]


def size_of(files: Sequence[Source]) -> int:
    """The lines of code of some files."""
    return sum(len(source.code_lines) for source in files)


def closure_problems(
    sources: Sequence[Source], most: Mapping[str, Reading] = MOST
) -> Iterator[str]:
    """What takes more reading than it may, or so little that it may less."""
    for row, reading in most.items():
        lines = size_of(closure(names_of(row), sources))
        if lines > reading.most:
            yield (
                f"{row}: with all that it imports, {lines} lines (max "
                f"{reading.most}); python -m tests.checks.closure {row}"
            )
        elif lines < 0.97 * reading.most and lines > reading.goal:
            yield f"{row}: {lines} lines; lower its limit of {reading.most}"


def main(names: Sequence[str]) -> None:
    """Print the table, or the files of some rows."""
    sources = library()
    for row in names:
        for source in closure(names_of(row), sources):
            print(f"{len(source.code_lines):6}  {source.path}")
    if not names:
        print(f"{'':26} files  lines    max   goal")
        for row, reading in MOST.items():
            files = closure(names_of(row), sources)
            print(
                f"{row:26} {len(files):5} {size_of(files):6,} "
                f"{reading.most:6,} {reading.goal:6,}"
            )


if __name__ == "__main__":
    main(sys.argv[1:])
