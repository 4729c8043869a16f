"""What a stage's check says of a learner who writes well."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import runpy
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from stages.manifest import (
    EXERCISES,
    REFERENCE,
    ROOT,
    Stage,
    source_files,
    stages,
)
from stages.running import Job, run_all
from stages.tree import Tree, install
from tests.course.learner import Learner
from tests.process import printed, python

every_stage = pytest.mark.parametrize(
    "stage", stages().values(), ids=lambda stage: f"{stage.number:02d}"
)


@every_stage
def test_untouched_stubs_are_to_write_and_nothing_else(
    stage: Stage, learner: Learner
) -> None:
    result = learner.check(stage.number)
    assert result.status == 1
    assert result.failed == {}, result.output
    assert len(result.to_write) >= 2 * len(stage.exercises)
    assert {result.verdicts[one.title] for one in stage.pieces} == {"·"}
    first = stage.pieces[0].functions[0]
    assert f"next: write {first.qualname} " in result.output
    assert "Traceback" not in result.output


@every_stage
def test_the_reference_is_green(
    stage: Stage, executor: ProcessPoolExecutor
) -> None:
    job = Job(Tree(REFERENCE, [stage.number]), [stage.number])
    (result,) = run_all([job], executor)
    assert result.status == 0, result.output
    assert result.unmarked == [], "tests that are of no exercise"
    for one in stage.exercises:
        assert len(result.signs[one.name]) >= 2, one.name


def test_all_written_is_all_green_and_typed(learner: Learner) -> None:
    learner.write_all()
    result = learner.check(*stages())
    assert result.status == 0, result.output
    assert "Stage 08: exercises done ✓" in result.output
    (learner.folder / "pyproject.toml").write_text(
        (EXERCISES / "pyproject.toml").read_text()
    )
    cache = str(ROOT / ".mypy_cache/filled")
    mypy = python("-m", "mypy", "--cache-dir", cache, cwd=learner.folder)
    assert mypy.returncode == 0, mypy.stdout


def test_an_editor_finds_nothing_to_complain_of(learner: Learner) -> None:
    """Mypy is run in exercises/ by `make types`; this is pyright, there."""
    (learner.folder / "pyproject.toml").write_text(
        (EXERCISES / "pyproject.toml").read_text()
    )
    learner.body("linked_list.linked_list.Link.prepend", "return x")
    pyright = ("-m", "pyright", "--pythonpath", sys.executable)
    run = python(*pyright, cwd=learner.folder)
    assert run.returncode == 1
    # Of the one mistake it does complain, and of nothing else.
    assert "1 error, 0 warnings" in run.stdout, run.stdout
    assert "linked_list/linked_list.py" in run.stdout


@every_stage
def test_one_sees_something_after_each_exercise(
    stage: Stage, learner: Learner
) -> None:
    learner.write_all()
    said = learner.check(stage.number).output
    for piece in stage.pieces:
        see = f"see what {piece.title} can do now:\n    "
        assert see in said, piece.title
    assert "see what" not in learner.check(stage.number).output, "it is news"


@pytest.mark.parametrize("numbers", [(1, 2), (3, 1), (8, 5, 2)])
def test_several_stages_at_once_say_the_truth(
    numbers: tuple[int, ...], learner: Learner
) -> None:
    written = stages()[numbers[0]]
    learner.write_all(one.name for one in written.exercises)
    result = learner.check(*numbers)
    assert result.status == 1
    assert result.failed == {}, result.output
    for one in written.exercises:
        # A test may need a stub of the other stage, which is not borrowed.
        assert result.verdicts[one.name] in "✓·"
    for number in numbers[1:]:
        for one in stages()[number].exercises:
            assert result.verdicts[one.name] == "·"


def test_one_stage_written_is_green_alone(learner: Learner) -> None:
    for stage in (stages()[6], stages()[1]):
        learner.write_all(one.name for one in stage.exercises)
        result = learner.check(stage.number)
        assert result.status == 0, result.output
        assert f"Stage {stage.number:02d}: exercises done ✓" in result.output


def test_a_learner_may_add_to_a_file(learner: Learner) -> None:
    first = stages()[1].exercises[0]
    learner.write(first.name)
    learner.edit(first.file, "class Link:", "_mine = 1\n\n\nclass Link:")
    result = learner.check(1, exercise=first.name)
    assert result.verdicts[first.name] == "✓"
    assert (
        "These pass.\nnext: write Link.prepend (ring: 1 of 5 written) in "
        in (result.output)
    )


def test_a_written_function_that_runs_into_a_stub_is_told_where(
    learner: Learner,
) -> None:
    ring = stages()[1].pieces[0]
    learner.write_all(one.name for one in ring.functions)
    text = learner.file("linked_list/linked_list.py").read_text()
    start = text.index("        is_sentinel = ")
    end = text.index("        x._prev = before")
    line = "        x._sort_key = _key_between(before, self)\n"
    learner.file("linked_list/linked_list.py").write_text(
        text[:start] + line + text[end:]
    )
    result = learner.check(1, exercise="linked_list.linked_list.Link.prepend")
    assert (
        "Link.prepend is written, but a test of it reached the stub of "
        "_make_room, called from exercises/fx/linked_list/linked_list.py:"
    ) in result.output
    assert "in _key_between" in result.output
    assert "next: write _make_room" in result.output


def test_a_function_whose_tests_need_a_stub_waits_for_it(
    learner: Learner,
) -> None:
    learner.write("last_users")
    said = learner.check(2).output
    assert "✓····  (· waits for Node._freeze)" in said
    assert "is written, but" not in said


def test_the_tests_collected_are_those_told(learner: Learner) -> None:
    said = learner.check(1).output
    collected = re.search(r"collected (\d+) items", said)
    outcomes = re.findall(r"(\d+) (?:passed|to write)", said.splitlines()[-1])
    assert collected is not None
    assert int(collected[1]) == sum(map(int, outcomes))


def test_three_failures_of_an_exercise_are_told_in_full(
    learner: Learner,
) -> None:
    for one in stages()[1].exercises:
        learner.write(one.name)
    learner.write(
        "linked_list.linked_list.Link.prepend", "self._prev = x", "pass"
    )
    result = learner.check(1, exercise="linked_list.linked_list.Link.prepend")
    assert len(result.failed) > 3
    assert result.output.count("hint: python -m stages hint") == 3
    assert "more like these" in result.output


def test_the_header_leaves_out_what_is_under_test(learner: Learner) -> None:
    said = learner.check(5, exercise=stages()[5].exercises[0].name).output
    assert "written in stage 05 · 01-04, 06-08 borrowed" in said


def test_the_header_counts_functions(learner: Learner) -> None:
    learner.write("Link._unlink")
    said = learner.check(1, exercise="Link._unlink").output
    assert "1 of 7 functions written in stage 01 (ring 1 of 5) · 02-08" in said
    assert (
        "next: write Link.prepend (ring: 1 of 5 written) in exercises/fx/"
        in (learner.check(1).output)
    )


def test_the_header_says_whose_the_code_is(learner: Learner) -> None:
    learner.write_all(one.name for one in stages()[2].exercises)
    learner.write(stages()[3].pieces[0].functions[0].name)
    said = learner.check(4, exercise=stages()[4].exercises[0].name).output
    count = len(stages()[4].exercises)
    assert (
        f"fx under test: exercises/fx: 0 of {count} functions written in "
        f"stage 04 · "
        f"01 borrowed · 02 yours · 03 partly borrowed · 05-08 borrowed"
    ) in said


@every_stage
def test_demos_use_only_stages_so_far_and_print_what_is_written(
    stage: Stage, executor: ProcessPoolExecutor
) -> None:
    expected = (stage.folder / "demo.txt").read_text(encoding="utf-8")
    found = executor.submit(_printed, stage.folder).result()
    # Of a loop, Python 3.14 knows the expression that it goes through.
    assert found.replace("    in the expression: y\n", "") == expected
    assert 5 <= len(expected.splitlines()) <= 45


def _printed(folder: Path) -> str:
    """What a stage's demo prints; for a process that has not imported fx."""
    install(Tree(REFERENCE))
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        runpy.run_path(str(folder / "demo.py"), run_name="__main__")
    return out.getvalue()


def test_a_demo_is_a_script() -> None:
    demo = stages()[1].folder / "demo.py"
    shown = demo.with_suffix(".txt").read_text(encoding="utf-8")
    assert printed(str(demo)) == shown


@every_stage
def test_a_stage_imports_no_later_one(stage: Stage) -> None:
    known = {
        file.path.removesuffix(".py").replace("/", "."): file.stage
        for file in source_files()
    }
    for path in sorted(stage.folder.glob("*.py")):
        if path.name == "after.py":  # runs with later stages borrowed
            continue
        for name in _imported(ast.parse(path.read_text(encoding="utf-8"))):
            if name == "fx" or name.startswith("fx."):
                file = name.removeprefix("fx.")
                assert known.get(file, 9) <= stage.number, (path, name)


def _imported(tree: ast.Module) -> Iterator[str]:
    """The modules that a file imports."""
    for part in ast.walk(tree):
        if isinstance(part, ast.Import):
            yield from (alias.name for alias in part.names)
        elif isinstance(part, ast.ImportFrom) and part.module:
            inside = [f"{part.module}.{alias.name}" for alias in part.names]
            folder = REFERENCE.parent / part.module.replace(".", "/")
            yield from inside if folder.is_dir() else [part.module]


def test_no_other_file_is_called_like_a_stage() -> None:
    names = {path.name for path in Path(ROOT, "stages").glob("[0-9]*")}
    assert names == {f"{number:02d}" for number in range(1, 9)}
