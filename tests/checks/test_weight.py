"""How much there is, with a ceiling for each: it may fall, and not grow unseen.

To raise a ceiling is a decision, which the message of its commit explains. A
change that lets a number fall lowers its ceiling in the same commit.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.checks.files import tracked
from tests.checks.sources import ROOT

CEILINGS: Final = {
    "lines of Python in fx": 42_380,
    "lines of Python in stages": 25_054,
    "lines of Python in tests": 80_622,
    "lines of Python in docs": 16_602,
    "words of the site": 74_640,
    "files in fx": 216,
}


def weight(files: Iterable[Path], root: Path) -> dict[str, int]:
    """What the files of a project amount to.

    Lines are all lines, and words what blanks separate in Markdown below docs.
    """
    found = dict.fromkeys(CEILINGS, 0)
    for file in files:
        folder = file.relative_to(root).parts[0]
        lines = f"lines of Python in {folder}"
        if file.suffix == ".py" and lines in found:
            found[lines] += len(file.read_bytes().splitlines())
        elif file.suffix == ".md" and folder == "docs":
            found["words of the site"] += len(file.read_bytes().split())
        found["files in fx"] += folder == "fx"
    return found


def test_nothing_grows_unseen() -> None:
    found = weight(tracked(), ROOT)
    over = {what: n for what, n in found.items() if n > CEILINGS[what]}
    assert not over, f"make it smaller, or say why it grows: {CEILINGS}"


def test_it_is_weighed(tmp_path: Path) -> None:
    (tmp_path / "fx").mkdir()
    (tmp_path / "fx/one.py").write_text("x = 1\n\n# y\n")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/page.md").write_text("Three short words.\n")
    found = weight(tmp_path.rglob("*.*"), tmp_path)
    assert [*found.values()] == [3, 0, 0, 0, 3, 1]
