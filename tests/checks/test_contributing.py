"""Every file of fx is in the table of CONTRIBUTING.md, and no row is stale."""

from __future__ import annotations

from pathlib import Path

from tests.checks.contributing import FILE, Row, rows, stale, uncovered
from tests.checks.sources import ROOT, library
from tests.quick import chosen, commands

TABLE = """
| to change | look at | its tests |
|---|---|---|
| a | `fx/a/` and `Node.x`, by `make b` | `tests/t.py`, `stages/NN/` |
| b | `fx/b.py` (why) | `tests/none.py` |
| c | nothing | `stages/NN/x.py` |
"""


def test_no_row_is_stale() -> None:
    table = rows(FILE.read_text(encoding="utf-8"))
    assert len(table) > 20
    wrong = list(stale(table, ROOT))
    assert not wrong, "\n".join(wrong)


def test_every_file_of_fx_is_in_a_row() -> None:
    files = [str(source.path) for source in library() if not source.is_init]
    assert len(files) > 50
    wrong = list(uncovered(rows(FILE.read_text(encoding="utf-8")), files))
    assert not wrong, "\n".join(wrong)


def test_a_stale_row_is_seen(tmp_path: Path) -> None:
    for name in ("fx/a", "tests", "stages/01", "stages/02"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("tests/t.py", "stages/01/x.py"):
        (tmp_path / name).write_text("")
    assert list(stale(rows(TABLE), tmp_path)) == [
        "b: there is no fx/b.py",
        "b: there is no tests/none.py",
        "c: there is no path under 'look at'",
        "c: there is no stages/NN/x.py",
    ]


def test_what_make_quick_runs_for_a_file() -> None:
    """Stages on the library, and a search in its short form."""
    table = [
        Row("a", ("fx/a/",), ("stages/02/", "tests/reliability/edits.py")),
        Row("b", ("stages/NN/stage.toml",), ("tests/parity/programs/b.py",)),
    ]
    changed = ["fx/a/x.py", "stages/01/stage.toml", "fx/b.py"]
    stages, parity, rest = commands(chosen(changed, table))
    assert stages[-2:] == ["--reference", "stages/02/"]
    assert parity[-2:] == ["-k", "b"]
    assert rest[-1].endswith("::test_nothing_is_wrong[edits]")


def test_a_file_in_no_row_is_seen() -> None:
    files = ["fx/a/x.py", "fx/b.py", "fx/ab.py"]
    assert list(uncovered(rows(TABLE), files)) == [
        "fx/ab.py: no row of CONTRIBUTING.md says when to look at it"
    ]
