"""What no longer fits the code of fx/ is told with the file to mend."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from stages import generate, prove
from stages.generate import lost_exercises, lost_mutants
from stages.manifest import REFERENCE, ROOT, exercises, stages


def test_an_exercise_that_is_gone_is_told_with_where_to_mend_it(
    tmp_path: Path,
) -> None:
    copy = tmp_path / "fx"
    shutil.copytree(REFERENCE, copy)
    assert [*lost_exercises(copy)] == []
    assert [*lost_mutants(copy)] == []
    path = copy / "linked_list" / "linked_list.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("def prepend(", "def prepended("))
    (line,) = lost_exercises(copy)
    asked = 'function = "linked_list.linked_list.Link.prepend"'
    toml = (ROOT / "stages/01/stage.toml").read_text("utf-8").splitlines()
    assert line == (
        f"stages/01/stage.toml:{toml.index(asked) + 1}: "
        "fx/linked_list/linked_list.py has 0 functions named Link.prepend, "
        "not one; did you mean Link.prepended?"
    )


def test_a_mutant_that_no_longer_fits_is_told(tmp_path: Path) -> None:
    copy = tmp_path / "fx"
    shutil.copytree(REFERENCE, copy)
    mutant = prove.mutants(stages()[1])[0]
    one = exercises()[mutant.function]
    text = (copy / one.file).read_text(encoding="utf-8")
    (copy / one.file).write_text(text.replace(mutant.was, mutant.becomes))
    first, *_ = lost_mutants(copy)
    assert first.startswith(
        f"stages/01/mutants.py: mutant of {mutant.function}: "
    )
    assert "occurs 0 times in the function" in first


def test_one_line_and_no_traceback_is_what_the_command_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def gone() -> dict[str, object]:
        raise ValueError(f"{ROOT}/stages/02/stage.toml: a.b names no file")

    monkeypatch.setattr(generate, "exercises", gone)
    monkeypatch.setattr("sys.argv", ["generate", "--check"])
    assert generate.main() == 1
    said = capsys.readouterr().out
    assert said == "stages/02/stage.toml: a.b names no file\n"
