"""What no longer fits the code of fx/ is told with the file to mend."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from stages import generate
from stages.manifest import REFERENCE, ROOT


def test_an_exercise_that_is_gone_is_told_with_where_to_mend_it(
    tmp_path: Path,
) -> None:
    copy = tmp_path / "fx"
    shutil.copytree(REFERENCE, copy)
    path = copy / "linked_list" / "linked_list.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("def prepend(", "def prepended("))
    with pytest.raises(ValueError, match="0 functions") as caught:
        generate.generated(copy)
    assert str(caught.value) == (
        "stages/01/stage.toml: fx/linked_list/linked_list.py: 0 functions are "
        "named Link.prepend"
    )


def test_one_line_and_no_traceback_is_what_the_command_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def gone() -> dict[str, object]:
        raise ValueError(f"{ROOT}/stages/02/stage.toml: a.b names no file")

    monkeypatch.setattr(generate, "generated", gone)
    monkeypatch.setattr("sys.argv", ["generate", "--check"])
    assert generate.main() == 1
    said = capsys.readouterr().out
    assert said == "stages/02/stage.toml: a.b names no file\n"
