"""What programs print is kept, and never older than the code."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from docs.machinery import running


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of fx, in a project of its own, where runs are counted."""
    file = tmp_path / "fx" / "a.py"
    file.parent.mkdir()
    file.write_text("1")
    runs = itertools.count(1)
    monkeypatch.setattr(running, "ROOT", tmp_path)
    monkeypatch.setattr(running, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(running, "_run", lambda *_: f"run {next(runs)}")
    return file


def test_nothing_is_run_twice(code: Path) -> None:
    assert running.output("t") == "run 1"
    assert running.output("t") == "run 1"
    assert running.output("u") == "run 2"
    assert running.output("t", "film") == "run 3"


def test_another_text_of_the_code_is_run_anew(code: Path) -> None:
    assert running.output("t") == "run 1"
    code.write_text("2")
    assert running.output("t") == "run 2"
    code.with_name("b.py").write_text("")
    assert running.output("t") == "run 3"
    code.with_name("b.py").unlink()
    assert running.output("t") == "run 2"


def test_what_ran_while_the_code_changed_is_not_kept(
    code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: str) -> str:
        code.write_text("2")
        return "of which code?"

    monkeypatch.setattr(running, "_run", run)
    assert running.output("t") == "of which code?"
    assert not list(code.parents[1].glob("cache/*"))


def test_a_program_is_run_with_the_code_of_this_project() -> None:
    printed = running.output("docs.examples.predict_01", "several_after")
    assert printed == "x second first\n"


def test_an_error_is_told_and_not_kept() -> None:
    for _ in range(2):
        with pytest.raises(running.Failed, match="no attribute 'nobody'"):
            running.output("docs.examples.predict_01", "nobody")
