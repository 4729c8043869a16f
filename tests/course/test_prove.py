"""Each stage's tests miss each stub, find each mutant, and say the sentence.

This is what makes a green stage worth something: see `stages/prove.py`.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from stages import functions, prove
from stages.manifest import REFERENCE, ROOT, Mutant, Stage, stages
from stages.prove import (
    _mutant_job,
    mutant_problems,
    mutants,
    other_problems,
    stub_problems,
)
from stages.running import Job, Result, run_all

LONGEST: Final = 25
"""The most lines that the body of an exercise may have."""

every_stage = pytest.mark.parametrize(
    "stage", stages().values(), ids=lambda stage: f"{stage.number:02d}"
)


def form_problems(stage: Stage) -> Iterator[str]:
    """Problems of a stage that show without running its tests."""
    if not 5 <= len(stage.exercises) <= 7:
        yield f"stage {stage.number:02d} has {len(stage.exercises)} functions"
    for one in stage.exercises:
        text = (REFERENCE / one.file).read_text(encoding="utf-8")
        try:
            found = functions.function(ast.parse(text), one.qualname)
        except LookupError as error:
            yield f"{one.name}: {error}"
            continue
        if functions.body_lines(found) > LONGEST:
            yield f"{one.name} has a body of over {LONGEST} lines"
    for target in stage.seal:
        path = target if "/" in target else f"{target.replace('.', '/')}.py"
        if target != "page" and not (ROOT / path).is_file():
            yield f"stage {stage.number:02d} is sealed by {target}: no file"
    yield from _list_problems(stage)


def _list_problems(stage: Stage) -> Iterator[str]:
    """What the list of mutants lacks."""
    counts = Counter(mutant.function for mutant in mutants(stage))
    names = {exercise.name for exercise in stage.exercises}
    if counts.total() <= 30:  # docs/classes.md says that there are more
        yield f"stage {stage.number:02d} has {counts.total()} mutants"
    for name in sorted(names):
        if counts[name] < 2:
            yield f"{name} has fewer than two mutants"
    for name in sorted(counts.keys() - names):
        yield f"a mutant of {name}, which is not an exercise"


def test_there_are_eight_stages() -> None:
    assert [*stages()] == [1, 2, 3, 4, 5, 6, 7, 8]


@every_stage
def test_exercises_can_be_stubbed(stage: Stage) -> None:
    assert [*form_problems(stage)] == []


@every_stage
def test_each_stub_alone_is_missed(
    stage: Stage, executor: ProcessPoolExecutor
) -> None:
    assert [*stub_problems(stage, executor)] == []


@every_stage
def test_each_mutant_is_found_and_told(
    stage: Stage, executor: ProcessPoolExecutor
) -> None:
    problems = [*mutant_problems(stage, executor)]
    assert problems == [], "\n\n".join(problems)


@every_stage
def test_right_versions_of_another_structure_pass(
    stage: Stage, executor: ProcessPoolExecutor
) -> None:
    assert [*other_problems(stage, executor)] == []


# --- that this itself can fail ----------------------------------------


def test_a_mutant_that_changes_nothing_is_complained_of(
    executor: ProcessPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stage, first) = stages()[1], mutants(stages()[1])[0]
    harmless = first._replace(becomes=first.was)
    silent = first._replace(told="a sentence that no test says")
    monkeypatch.setattr(
        "stages.prove.mutants", lambda stage: (harmless, silent)
    )
    one, other = mutant_problems(stage, executor)
    assert "is not found" in one
    assert "but the tests do not say 'a sentence that no test says'" in other


def test_a_mutant_is_tried_again_if_something_changed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stage = stages()[1]
    (mutant, other) = mutants(stage)[:2]
    tried: list[str] = []

    def run_all(jobs: list[Job], executor: object) -> list[Result]:
        tried.extend(job.said for job in jobs)
        return [
            Result(1, {}, {}, {"": job.said}, {}, [], [], [], "")
            for job in jobs
        ]

    def now(*found: Mutant, needed: str = "", ci: str = "") -> list[str]:
        tried.clear()
        monkeypatch.setenv("CI", ci)
        monkeypatch.setattr(prove, "mutants", lambda stage: found)
        monkeypatch.setattr(prove, "_needed", lambda stage: needed)
        assert [*mutant_problems(stage, None)] == []  # type: ignore[arg-type]
        return [*tried]

    monkeypatch.setattr(prove, "MEMORY", tmp_path / "build" / "green")
    monkeypatch.setattr(prove, "run_all", run_all)
    assert now(mutant) == [mutant.told]
    assert now(mutant, other) == [other.told]
    assert now(mutant._replace(becomes="0")) == [mutant.told]
    assert now(mutant, needed="other files") == [mutant.told]
    assert now(mutant, ci="true") == [mutant.told]


def test_what_a_mutant_depends_on() -> None:
    assert len({prove._needed(stage) for stage in stages().values()}) == 8


def test_a_run_ends_when_the_mutant_is_told(
    executor: ProcessPoolExecutor,
) -> None:
    job = _mutant_job(mutants(stages()[1])[0], stages()[1])
    told, whole = run_all([job, job._replace(said="")], executor)
    assert told.status == whole.status == pytest.ExitCode.TESTS_FAILED
    assert len(told.failed) < len(whole.failed)


def test_a_mutant_must_say_what_it_changes() -> None:
    mutant = Mutant("linked_list.linked_list.Link.prepend", "", "x", "y", "")
    with pytest.raises(ValueError, match="occurs 2 times"):
        mutant.applied_to("x = x")
