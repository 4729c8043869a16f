"""Proves that the tests of a stage find likely mistakes and explain them.

- If one exercise is left as a stub, a test of the stage notices.
- Each mutant fails a test of its exercise, and that test says the sentence
  that the mutant's entry promises.
- The tests pass for right versions with another structure (`others.toml`).

`python -m stages prove 01` proves a stage, and `make test` all of them.
Mutants that were found and told are remembered.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from types import ModuleType
from typing import Final

from stages import functions
from stages.manifest import (
    HERE,
    REFERENCE,
    ROOT,
    Exercise,
    Mutant,
    Stage,
    exercises,
    pieces,
    source_files,
    stages,
)
from stages.running import Job, Result, flat, pool, run_all
from stages.tree import Tree, reference_source, with_version

MEMORY: Final = ROOT / "build" / "green-mutants"
"""Where the mutants are remembered that were found and told, by a hash."""


def mutants(stage: Stage) -> tuple[Mutant, ...]:
    """The mutants of a stage.

    Raises:
        TypeError: MUTANTS in its mutants.py is not a tuple.
    """
    module: ModuleType = importlib.import_module(
        f"stages.{stage.number:02d}.mutants"
    )
    found: object = module.MUTANTS
    if not isinstance(found, tuple):
        raise TypeError(f"{module.__file__}: MUTANTS must be a tuple")
    return found


def stub_problems(stage: Stage, executor: ProcessPoolExecutor) -> Iterator[str]:
    """The exercises that can be left as a stub without a test noticing."""
    jobs = [_stub_job(one, stage) for one in stage.exercises]
    for one, result in zip(
        stage.exercises, run_all(jobs, executor), strict=True
    ):
        if not result.to_write and not result.failed:
            yield f"no test notices that {one.name} is a stub:\n{result.output}"


def mutant_problems(
    stage: Stage, executor: ProcessPoolExecutor
) -> Iterator[str]:
    """The mutants that no test finds, or finds without the promised words.

    Those that were found and told before are not tried again, unless
    something has changed that their check depends on.  CI tries all.
    """
    known: set[str] = set()
    if MEMORY.is_file() and not os.environ.get("CI"):
        known |= {*MEMORY.read_text(encoding="utf-8").split()}
    needed = _needed(stage)
    left = {
        key: mutant
        for mutant in mutants(stage)
        if (key := _key(needed, mutant)) not in known
    }
    jobs = [_mutant_job(mutant, stage) for mutant in left.values()]
    for key, result in zip(left, run_all(jobs, executor), strict=True):
        problems = [*_unkilled(left[key], result)]
        yield from problems
        if not problems:
            MEMORY.parent.mkdir(exist_ok=True)
            with MEMORY.open("a", encoding="utf-8") as file:
                file.write(f"{key}\n")


def _key(needed: str, mutant: Mutant) -> str:
    """A hash of a mutant, and of what its check depends on."""
    return hashlib.sha256(f"{needed}{mutant}".encode()).hexdigest()


def _needed(stage: Stage) -> str:
    """A hash of what the check of a stage depends on.

    That is fx without later stages and without passes, which the stage does
    not import; the stage's tests; and what runs them.
    """
    later = {file.path for file in source_files() if file.stage > stage.number}
    digest = hashlib.sha256(f"{sys.version} {version('torch')}".encode())
    tests = [stage.folder / "stage.toml", *stage.folder.glob("test_*.py")]
    for path in sorted([*REFERENCE.rglob("*.py"), *HERE.glob("*.py"), *tests]):
        name, text = str(path.relative_to(ROOT)), path.read_bytes()
        is_later = name.removeprefix("fx/") in later
        if not is_later and not text.startswith(b'"""Passes: '):
            digest.update(f"{name} {len(text)} ".encode() + text)
    return digest.hexdigest()


def other_problems(
    stage: Stage, executor: ProcessPoolExecutor
) -> Iterator[str]:
    """What the tests say of right versions with another structure than ours."""
    rows = tomllib.loads((HERE / "others.toml").read_text(encoding="utf-8"))
    texts: dict[str, str] = {}
    for row in rows["other"]:
        one = exercises()[row["function"]]
        if one.stage == stage.number:
            text = (REFERENCE / one.file).read_text(encoding="utf-8")
            texts[one.file] = functions.with_source(
                texts.get(one.file, text), one.qualname, row["source"]
            )
    tree = Tree(REFERENCE, [stage.number], texts=texts)
    (result,) = run_all([Job(tree, [stage.number])], executor)
    if result.status:
        yield f"right versions in others.toml are refused:\n{result.output}"


def _unkilled(mutant: Mutant, result: Result) -> Iterator[str]:
    """A complaint if the tests do not say what the mutant promises."""
    title = f"mutant of {mutant.function} ({mutant.misconception})"
    if not result.failed:
        yield f"{title} is not found:\n{result.output}"
    elif not any(flat(mutant.told) in flat(s) for s in result.failed.values()):
        said = "\n--\n".join(result.failed.values())
        yield (
            f"{title} is found, but the tests do not say {mutant.told!r}:\n"
            f"{said}"
        )


def _stub_job(one: Exercise, stage: Stage) -> Job:
    """A check of the reference with one exercise as a stub."""
    text = (REFERENCE / one.file).read_text(encoding="utf-8")
    texts = {one.file: functions.stubbed(text, {one.qualname: one.stub})}
    tree = Tree(REFERENCE, [stage.number], texts=texts)
    return Job(tree, [stage.number], first_failure=True)


def _mutant_job(mutant: Mutant, stage: Stage) -> Job:
    """A check of the reference with one function replaced by a mutant."""
    one = exercises()[mutant.function]
    source = mutant.applied_to(reference_source(one))
    tree = with_version(one, source, stage.number)
    title = pieces()[one.name].title
    return Job(tree, [stage.number], exercise=title, said=mutant.told)


def prove(
    numbers: Sequence[int], executor: ProcessPoolExecutor
) -> Iterator[str]:
    """The problems of some stages and their tests."""
    for number in numbers:
        stage = stages()[number]
        yield from other_problems(stage, executor)
        yield from stub_problems(stage, executor)
        yield from mutant_problems(stage, executor)


def main(numbers: Sequence[int], say: Callable[[str], object]) -> int:
    """Prove some stages, and say what came of it."""
    with pool() as executor:
        found = [*prove(numbers, executor)]
    for problem in found:
        say(f"{problem}\n")
    done = "every stub and every mutant is found and explained"
    say(f"{len(found)} problems" if found else done)
    return bool(found)
