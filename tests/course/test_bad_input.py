"""Whatever goes wrong: red, one clear paragraph, nothing lost."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

import pytest

from stages.checking import Overtime, no_limit, time_limit
from stages.generate import generated, stale, sums
from stages.manifest import ROOT, exercises, pieces, stages
from stages.running import Job, pool, run_all
from stages.tree import Broken, problems
from stages.workspace import edited_reference, reset_files, reset_functions
from tests.course.learner import Learner
from tests.process import python

PREPEND = "linked_list.linked_list.Link.prepend"


def _python(*arguments: str, cwd: Path = ROOT, **env: str) -> tuple[int, str]:
    """The status of Python, with caching of bytecode on, and what it says."""
    plain = {"PYTHONDONTWRITEBYTECODE": "", "PYTEST_ADDOPTS": ""}
    run = python(*arguments, cwd=cwd, env=plain | env)
    return run.returncode, run.stdout + run.stderr


def _pytest(*arguments: str, cwd: Path = ROOT) -> tuple[int, str]:
    """Pytest as a person runs it."""
    return _python("-m", "pytest", *arguments, cwd=cwd)


# --- the command -----------------------------------------------------------


def test_a_stage_that_does_not_exist() -> None:
    status, said = _pytest("stages/9")
    assert status != 0
    assert (
        "there is no stage '9': the stages are stages/01 to stages/08" in said
    )
    assert "Did you mean" not in said


def test_a_stage_written_short() -> None:
    status, said = _pytest("stages/4")
    assert status != 0
    assert "Did you mean stages/04?" in said


def test_a_stage_beside_the_tests_of_the_library() -> None:
    status, said = _pytest("stages/04", "tests")
    assert status != 0
    assert "one process can import only one of them" in said
    assert "pytest stages/04\n" in said
    assert "pytest tests\n" in said


def test_a_stage_in_several_processes() -> None:
    status, said = _pytest("stages/01", "-n", "2")
    assert status not in (0, 1)
    assert "a stage is checked by one process: leave out -n" in said


# --- the files -------------------------------------------------------------


def test_a_deleted_file(learner: Learner) -> None:
    learner.file("codegen/emit.py").unlink()
    result = learner.check(1)
    assert result.status not in (0, 1)
    assert "exercises/fx/codegen/emit.py is missing" in result.output
    assert "python -m stages reset codegen/emit.py" in result.output


FILE = "linked_list/linked_list.py"
HERE = f"exercises/fx/{FILE}"
EDITS: dict[str, tuple[int, str, str, list[str]]] = {
    "a function is renamed": (
        *(1, "def prepend(", "def put_before("),
        [
            f"{HERE} must have one function Link.prepend (stage 01), but 0 "
            f"functions are named Link.prepend",
            f"python -m stages reset {PREPEND}",
        ],
    ),
    "a signature is changed": (
        *(1, "def prepend(self: Self, x: ", "def prepend(self: Self, link: "),
        [
            "the signature of Link.prepend has changed",
            "def prepend(self: Self, link: Self) -> None",
        ],
    ),
    "an error at import": (
        *(1, "GAP: Final = 1 << 16", "GAP: Final = GAPP"),
        [
            *("cannot be imported", f"{HERE}:"),
            "NameError: name 'GAPP' is not defined",
        ],
    ),
    "an import that ends the program": (
        *(1, "GAP: Final", "raise SystemExit(0)\nGAP: Final"),
        ["cannot be imported", "SystemExit: 0"],
    ),
    "a helper that a borrowed function needs": (
        *(2, "def _key_between(", "def _between("),
        [
            "linked_list.py has no `_key_between` any more",
            "Link.prepend (stage 01) is not written yet",
        ],
    ),
}
"""The stage that is checked; a text of FILE, and the new one; what is said."""


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_that_breaks_the_file(edit: str, learner: Learner) -> None:
    stage, was, becomes, told = EDITS[edit]
    learner.edit(FILE, was, becomes)
    result = learner.check(stage)
    assert result.status not in (0, 1)
    assert [text for text in told if text not in result.output] == []
    assert "Traceback" not in result.output


def test_a_syntax_error(learner: Learner) -> None:
    learner.body(PREPEND, "x._next = = self")
    result = learner.check(1)
    assert result.status not in (0, 1)
    assert "linked_list.py:" in result.output
    assert "syntax error: invalid syntax" in result.output
    assert "x._next = = self" in result.output


def test_marks_of_a_merge(learner: Learner) -> None:
    path = learner.file("node.py")
    path.write_text(path.read_text() + "\n<<<<<<< yours\n")
    result = learner.check(1)
    assert result.status not in (0, 1)
    assert "These are the conflict markers of a merge" in result.output


def test_a_folder_that_is_missing(learner: Learner) -> None:
    shutil.rmtree(learner.folder / "fx")
    (said,) = problems(learner.tree(1))
    assert "exercises/fx is missing" in said
    assert "python -m stages reset all" in said
    reset_files(learner.work, generated())
    assert [*problems(learner.tree(1))] == []


def test_a_file_that_begins_with_a_byte_order_mark(learner: Learner) -> None:
    learner.write(PREPEND)
    path = learner.file("linked_list/linked_list.py")
    text = path.read_text(encoding="utf-8")
    path.write_text(text, encoding="utf-8-sig", newline="\r\n")
    assert learner.check(1, exercise=PREPEND).failed == {}
    reset_functions(learner.work, [exercises()[PREPEND]])
    assert [*stale(learner.folder / "fx")] == []


def test_an_import_that_a_borrowed_function_needs(learner: Learner) -> None:
    text = learner.file("linked_list/namespace.py").read_text()
    assert "import re\n" in text
    learner.edit("linked_list/namespace.py", "import re\n", "")
    result = learner.check(2)
    assert result.status not in (0, 1)
    assert "`re`" in result.output or "name 're'" in result.output


def test_an_fx_that_was_imported_before(tmp_path: Path) -> None:
    (tmp_path / "early.py").write_text("import fx\n")
    run = python(
        *("-m", "pytest", "-p", "early", "stages/01"),
        env={"PYTHONPATH": str(tmp_path)},
    )
    assert run.returncode != 0
    said = run.stdout + run.stderr
    assert "`fx` was imported before the check began" in said


# --- the code --------------------------------------------------------------


@pytest.mark.parametrize("body", ["pass", "...", "", "return", "return None"])
def test_an_empty_body_is_not_written(body: str, learner: Learner) -> None:
    learner.body(PREPEND, body)
    result = learner.check(1, exercise=PREPEND)
    assert result.status == 1
    assert result.to_write, result.output
    assert "next: " in result.output


def test_an_endless_loop_is_stopped(learner: Learner) -> None:
    learner.body(PREPEND, "while True:\n            x = self")
    result = learner.check(1, exercise=PREPEND, seconds=1)
    assert result.status == 1
    assert "Still running: stopped after 1 seconds" in result.output
    assert "exercises/fx/linked_list/linked_list.py:" in result.output
    assert "in prepend" in result.output


def test_the_check_ends_at_the_second_endless_test(learner: Learner) -> None:
    learner.write_all()
    learner.write("Link._unlink", "after._prev = before", "while True: pass")
    result = learner.check(1, seconds=1)
    assert result.status == 1
    assert len(result.stuck) == 2
    assert "two tests did not end" in result.output
    assert "next: fix Link._unlink of ring in " in result.output


def test_a_loop_that_catches_everything_is_stopped_too(
    learner: Learner,
) -> None:
    learner.body(
        PREPEND,
        "while True:\n"
        "            try:\n"
        "                x = self\n"
        "            except Exception:\n"
        "                pass",
    )
    result = learner.check(1, exercise=PREPEND, seconds=1)
    assert result.status == 1
    assert "Still running: stopped after 1 seconds" in result.output


def test_an_endless_loop_at_import_is_stopped(learner: Learner) -> None:
    learner.edit(
        "linked_list/linked_list.py",
        "GAP: Final = 1 << 16",
        "while True:\n    pass\nGAP: Final = 1 << 16",
    )
    result = learner.check(1, seconds=1)
    assert result.status not in (0, 1)
    assert "importing fx does not end: stopped after 2 seconds" in result.output


def test_a_function_that_ends_the_program(learner: Learner) -> None:
    learner.body(PREPEND, "raise SystemExit(0)")
    result = learner.check(1, exercise=PREPEND)
    assert result.status == 1
    assert "ended the program" in result.output


def test_a_function_that_skips_its_test(learner: Learner) -> None:
    learner.body(PREPEND, "import unittest\n        raise unittest.SkipTest")
    assert learner.check(1, exercise=PREPEND).status == 1


def test_a_function_that_ends_the_process(learner: Learner) -> None:
    learner.body(PREPEND, "import os\n        os._exit(0)")
    with pool(1) as executor, pytest.raises(Broken, match=r"os\._exit"):
        run_all([Job(learner.tree(1), [1], PREPEND)], executor)


def test_what_is_half_written_in_another_stage(learner: Learner) -> None:
    learner.write_all(one.name for one in stages()[2].exercises)
    ring = pieces()[PREPEND].functions
    learner.write_all(one.name for one in ring if one.name != PREPEND)
    learner.body(
        PREPEND,
        'x = x\n        raise NotImplementedError("stage 01: Link.prepend")',
    )
    result = learner.check(2)
    assert result.failed == {}
    assert "next: write Link._unlink (ring: " in result.output


def test_work_is_limited_and_waiting_a_little() -> None:
    with time_limit(0.2):
        time.sleep(0.5)  # a busy machine
    with pytest.raises(Overtime, match=r"after 0\.2 seconds"), time_limit(0.2):
        while True:
            pass
    with pytest.raises(Overtime, match="of waiting"), time_limit(0.2):
        time.sleep(5)
    with time_limit(0.2):
        no_limit()  # as for somebody in a debugger
        while time.process_time() % 2 < 1.5:
            pass


# --- the reference ---------------------------------------------------------


def test_work_in_the_wrong_tree(tmp_path: Path) -> None:
    assert edited_reference() == []
    copy = tmp_path / "fx"
    shutil.copytree(ROOT / "fx", copy)
    assert edited_reference(copy) == []
    with (copy / "node.py").open("a") as file:
        file.write("# mine\n")
    (said,) = edited_reference(copy)
    assert "fx/node.py: not as delivered" in said
    assert "your work belongs in exercises/fx/node.py" in said


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of its own, with the stubs as generated."""
    folder = tmp_path_factory.mktemp("clone")
    skip = shutil.ignore_patterns("__pycache__", ".*", "fx")
    shutil.copytree(ROOT / "fx", folder / "fx")
    shutil.copytree(ROOT / "stages", folder / "stages", ignore=skip)
    shutil.copytree(ROOT / "exercises", folder / "exercises", ignore=skip)
    shutil.copy(ROOT / "pyproject.toml", folder)
    for name, text in generated().items():
        path = folder / "exercises" / "fx" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "stages" / "reference.sha256").write_text(sums())
    return folder


def _in_clone(
    clone: Path, *arguments: str, folder: str = ".", **env: str
) -> tuple[int, str]:
    """Python in a checkout of its own."""
    paths = {
        "PYTHONPATH": str(clone),
        "MYPY_CACHE_DIR": str(ROOT / ".mypy_cache/filled"),
    }
    return _python(*arguments, cwd=clone / folder, **paths | env)


def test_no_run_executes_what_another_borrowed(clone: Path) -> None:
    call = (
        "import fx.linked_list.linked_list as m; print(m.__file__); "
        "a, b = m.Link(), m.Link(); a.prepend(b)"
    )
    for number in (3, 4):
        check = ("-m", "pytest", f"stages/{number:02d}")
        status, said = _in_clone(clone, *check)
        assert status == 1, said
        assert " to write in " in said
        assert " failed" not in said, said
    exercises = str(clone / "exercises")
    # Not at the top of the checkout: there, `fx` is the reference.
    for _ in range(2):  # the second time from Python's own cache
        status, said = _in_clone(
            clone, "-c", call, folder="stages", PYTHONPATH=exercises
        )
        assert status == 1
        assert (
            str(clone / "exercises" / "fx" / "linked_list" / "linked_list.py")
            in said
        )
        assert "NotImplementedError: stage 01: Link.prepend" in said
    for folder in (".", "exercises", "stages"):
        done = _in_clone(
            clone, "-c", "import fx", folder=folder, PYTHONPATH=exercises
        )
        assert done == (0, "")


def test_a_stage_from_within_its_folder(clone: Path) -> None:
    check = ("-m", "pytest")
    status, said = _in_clone(clone, *check, folder="stages/01")
    assert status == 1
    assert "written in stage 01" in said
    assert "next: write" in said


@pytest.mark.parametrize("named", [".", "stages/01/..", "stages/01"])
def test_no_stage_is_checked_with_the_reference_by_mistake(
    named: str, clone: Path
) -> None:
    """Not by a folder around it, nor by another checkout's pytest."""
    there = {"PYTHONPATH": str(clone if named == "." else ROOT)}
    status, said = _in_clone(clone, "-P", "-m", "pytest", named, **there)
    assert status not in (0, 1)
    found = "collected 0 items" if named == "." else "would check the work"
    assert found in said
    assert " passed" not in said


def test_a_part_of_a_stage_is_not_called_the_stage(clone: Path) -> None:
    path = clone / "exercises" / "fx"
    before = {name: (path / name).read_text() for name in generated()}
    try:
        for one in stages()[1].exercises:
            shutil.copy(ROOT / "fx" / one.file, path / one.file)
        check = ("-m", "pytest", "stages/01")
        # Every exercise has other tests than this one.
        part = (*check, "--deselect", _a_test(clone))
        status, said = _in_clone(clone, *part)
        assert status == 0
        assert "These pass. Now: pytest stages/01" in said
        assert "is done" not in said
        _, said = _in_clone(clone, *check, "--collect-only")
        assert "No test was run." in said
    finally:
        for name, text in before.items():
            (path / name).write_text(text)


def test_a_stage_is_done_when_its_tests_pass_and_then_can_be_sealed(
    clone: Path,
) -> None:
    path, manifest = clone / "exercises" / "fx", clone / "stages/01/stage.toml"
    before = {name: (path / name).read_text() for name in generated()}
    text = manifest.read_text()
    sealing = clone / "tests" / "test_sealing.py"
    sealing.parent.mkdir()
    sealing.write_text("def test_it() -> None:\n    assert not 'it is wrong'\n")
    try:
        for one in stages()[1].exercises:
            shutil.copy(ROOT / "fx" / one.file, path / one.file)
        start, _, rest = text.partition("seal = [")
        _, _, rest = rest.partition("]\n")
        manifest.write_text(f'{start}seal = ["tests/test_sealing.py"]\n{rest}')
        status, said = _in_clone(clone, "-m", "pytest", "stages/01")
        assert status == 0
        assert "Stage 01: exercises done ✓" in said
        assert "python -m stages seal 01" in said
        status, said = _in_clone(clone, "-m", "stages", "seal", "01")
        assert status == 1
        assert "--- tests/test_sealing.py::test_it" in said
        assert "AssertionError: assert not 'it is wrong'" in said
        assert said.rstrip().endswith("Stage 01 is done, and not sealed.")
        sealing.write_text("def test_it() -> None:\n    pass\n")
        status, said = _in_clone(clone, "-m", "stages", "seal", "01")
        assert status == 0, said
        assert re.search(r"✓ 1 of 2, \d+ s: tests/test_sealing.py", said)
        assert "Stage 01 is sealed ✓" in said
        _, said = _in_clone(clone, "-m", "stages")
        assert "sealed" in said
    finally:
        manifest.write_text(text)
        shutil.rmtree(sealing.parent)
        for name, old in before.items():
            (path / name).write_text(old)


def _a_test(clone: Path) -> str:
    """The id of a test of an exercise that has several."""
    text = (clone / "stages" / "01" / "test_namespace.py").read_text()
    name = text.partition("\ndef test_")[2].partition("(")[0]
    return f"stages/01/test_namespace.py::test_{name}"


def test_a_learner_who_edited_the_reference(clone: Path) -> None:
    path = clone / "fx" / "linked_list" / "linked_list.py"
    before = path.read_text()
    try:
        path.write_text(before + "\n# my work\n")
        status, said = _in_clone(clone, "-m", "pytest", "stages/01")
        assert status not in (0, 1)
        assert "fx/linked_list/linked_list.py: not as delivered" in said
        status, said = _in_clone(
            clone, "-m", "pytest", "stages/01", "--reference"
        )
        assert status == 0, said
    finally:
        path.write_text(before)
