"""Checks the core of each stage: the files that explain its main idea.

    python -m tests.checks.core     lists them with their lines of code

`stages/NN/stage.toml` says which files these are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from stages.manifest import Stage, stages
from tests.checks.sources import Source, library

MOST_IN_A_STAGE = 1_050
"""The most lines of code (without comments) in the core of a stage."""
MOST_IN_ALL = 5_700
"""The most lines of code in all cores together."""


def core_problems(
    found: Mapping[int, Stage], sources: Sequence[Source]
) -> Iterator[str]:
    """Cores that are too large, or that leave out an exercise."""
    by_path = {str(source.path): source for source in sources}
    total = 0
    for stage in found.values():
        where = f"stages/{stage.number:02d}/stage.toml"
        for file in stage.core:
            source = by_path.get(f"fx/{file}")
            if source is None:
                yield f"{where}: core names {file}, which is not in fx/"
            elif source.stage != stage.number:
                yield f"{where}: core names {file}, of another stage"
        for file in {one.file for one in stage.exercises} - {*stage.core}:
            yield f"{where}: {file} holds an exercise and is not in core"
        lines = sum(count(by_path, file) for file in stage.core)
        if lines > MOST_IN_A_STAGE:
            yield f"{where}: core has {lines} lines (max {MOST_IN_A_STAGE})"
        total += lines
    if total > MOST_IN_ALL:
        yield f"the cores have {total} lines (max {MOST_IN_ALL})"


def count(by_path: Mapping[str, Source], file: str) -> int:
    """The lines of code of a file of fx/, 0 if there is no such file."""
    source = by_path.get(f"fx/{file}")
    return len(source.code_lines) if source else 0


def rest_of(stage: Stage, sources: Sequence[Source]) -> list[str]:
    """The files of a stage that are not in its core, as paths below fx/."""
    paths = [
        str(source.path).removeprefix("fx/")
        for source in sources
        if source.stage == stage.number and not source.is_init
    ]
    return [path for path in paths if path not in stage.core]


def main() -> None:
    """Print each stage's core and rest with their lines of code."""
    sources = library()
    by_path = {str(source.path): source for source in sources}
    total = 0
    for stage in stages().values():
        core = sum(count(by_path, file) for file in stage.core)
        rest = rest_of(stage, sources)
        lines = sum(count(by_path, file) for file in rest)
        total += core
        print(f"{stage.number:02d} {stage.title}: core {core}, rest {lines}")
        for file in stage.core:
            print(f"    {count(by_path, file):5}  {file}")
        for file in rest:
            print(f"    {count(by_path, file):5}  ({file})")
    whole = sum(len(source.code_lines) for source in sources)
    print(f"all cores: {total}; fx/: {whole}")


if __name__ == "__main__":
    main()
