"""A copied or moved clone notices that `.venv` points elsewhere."""

from __future__ import annotations

from pathlib import Path

from stages.manifest import ROOT
from stages.plugin import _is_in_stages
from stages.workspace import moved
from tests.process import printed


def clone(folder: Path) -> Path:
    """A folder that looks like a clone of this project."""
    (folder / "stages").mkdir(parents=True)
    (folder / "stages" / "plugin.py").write_text("")
    return folder.resolve()


def test_a_clone_with_its_own_environment_is_fine(tmp_path: Path) -> None:
    mine = clone(tmp_path / "mine")
    assert moved(mine / "stages", mine) == ""
    assert moved(tmp_path, mine) == ""


def test_a_copy_is_told_which_clone_it_would_check(tmp_path: Path) -> None:
    old, new = clone(tmp_path / "old"), clone(tmp_path / "new")
    said = moved(new / "exercises", old)
    assert said.startswith(f"You are in {new}, but")
    assert f"stages of {old}" in said
    assert "rm -rf .venv && python3 -m venv .venv" in said


def test_this_clone_is_where_it_was_made() -> None:
    assert moved(ROOT) == ""


def test_a_stage_of_any_clone_is_one_of_the_course(tmp_path: Path) -> None:
    stage = tmp_path / "copy" / "stages" / "04"
    stage.mkdir(parents=True)
    assert not _is_in_stages(stage)
    (stage.parent / "plugin.py").write_text("")
    assert _is_in_stages(stage) and _is_in_stages(stage.parent)
    assert _is_in_stages(ROOT / "stages" / "04" / "test_state.py")
    assert not _is_in_stages(ROOT / "tests")


def test_tests_of_the_library_know_nothing_of_the_course() -> None:
    script = (
        "import sys, pytest\n"
        "status = pytest.main(['-q', 'tests/checks/test_contributing.py'])\n"
        "print(int(status), [m for m in sys.modules if m[:7] == 'stages.'])\n"
    )
    said = printed("-c", script).splitlines()
    assert said[-1] == "0 ['stages.plugin']"
