"""What `make matrix` runs, and what its table says about the rest."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.reliability import matrix
from tests.reliability.matrix import Row, counted, gaps, need_space, planned
from tests.versions import uv
from tests.versions.pythons import Python

TORCHES = ["2.9.1", "2.10.0", "2.15.0"]


def test_each_torch_has_a_row_and_each_python_the_ends() -> None:
    assert planned(["3.11", "3.12"], TORCHES) == [
        ("3.11", "2.9.1"),
        ("3.12", "2.9.1"),
        ("3.12", "2.10.0"),
        ("3.11", "2.15.0"),
        ("3.12", "2.15.0"),
    ]
    assert planned(["3.14"], TORCHES) == [("3.14", torch) for torch in TORCHES]


def test_the_oldest_torch_is_that_of_the_package() -> None:
    assert matrix.oldest_torch() == "2.9"
    assert matrix.WITHOUT.keys() == {"2.9"}


def test_every_file_of_a_test_that_is_left_out_exists() -> None:
    tests = matrix.left_out("2.9.1")
    assert len(tests) > 10
    for test in tests:
        path, _, name = test.partition("::")
        text = (uv.ROOT / path).read_text(encoding="utf-8")
        assert name.partition("[")[0] in text


def test_the_outcomes_of_tests_are_counted() -> None:
    text = (
        "..F\nFAILED tests/a.py::f[a b] - x\nERROR tests/a.py::f - y\n"
        "1 failed, 2 passed in 3661.10s (1:01:01)\n"
        "a library: leaked 1 instance\n"
    )
    assert counted(text) == (2, ["tests/a.py::f[a b]", "tests/a.py::f"])
    assert counted("1,2\nno tests ran in 0.1s") == (0, ["no tests ran in 0.1s"])
    assert counted("Segmentation fault\n") == (0, ["Segmentation fault"])
    listed = "\n\n10/12 tests collected (2 deselected) in 1.0s\n"
    assert matrix.number("deselected", listed) == 2


def test_the_table_says_what_is_not_in_it() -> None:
    rows = {
        "3.12/2.15": Row("3.12.1", "2.15.0", "2026-01-02", True, True, 2000),
        "3.11/2.9": Row("3.11.7", "2.9.1", absent="there is no wheel"),
    }
    lines = matrix.table(rows, ["3.11", "3.12"], TORCHES)
    assert lines[2:5] == [
        "| 3.12.1 | 2.15.0 | runs | runs | 2,000 | 0 | none |",
        "",
        "Run on 2026-01-02.",
    ]
    said = list(gaps(rows, ["3.12"], TORCHES))
    assert said[:4] == [
        "Python 3.13: this machine does not have it.",
        "Python 3.14: this machine does not have it.",
        "Python 3.11.7 with torch 2.9.1: there is no wheel",
        "Not run yet: 3.12/2.9, 3.12/2.10, 3.11/2.15.",
    ]
    assert "newest torch.fx" in said[5]
    assert said[-1].startswith("Left out beside torch 2.9, as its Dynamo")


def test_a_full_disk_is_told_first(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(uv.ROOT)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    for free, fits in ((13e9, True), (11e9, False)):
        usage = usage._replace(free=int(free))
        if fits:
            need_space()
        else:
            with pytest.raises(OSError, match=r"12 GB .* 11 GB are free"):
                need_space()


def test_a_torch_is_removed_after_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, environment = tmp_path / "cache", tmp_path / "environment"
    seen = []

    def run(python: Python, torch: str, **more: str) -> Row:
        where = Path(more.get("UV_CACHE_DIR", tmp_path / "shared"))
        where.mkdir(exist_ok=True)
        environment.mkdir()
        there = sorted(path.name for path in cache.glob("*"))
        (where / torch).touch()
        seen.append((python.minor, torch, there))
        return Row(python.text, torch, used=True, tour=True)

    for name, value in (
        ("FOLDER", tmp_path),
        ("CACHE", cache),
        ("ENVIRONMENT", environment),
        ("need_space", lambda: None),
        ("run", run),
    ):
        monkeypatch.setattr(matrix, name, value)
    found = {f"3.{n}": Python((3, n, 1), "") for n in (11, 12)}
    pairs = planned(list(found), TORCHES)
    rows: dict[str, Row] = {}
    assert len(list(matrix.run_all(pairs, found, "2.15.0", rows))) == 5
    assert seen == [
        ("3.11", "2.9.1", []),
        ("3.12", "2.9.1", ["2.9.1"]),
        ("3.12", "2.10.0", []),
        ("3.11", "2.15.0", []),
        ("3.12", "2.15.0", []),
    ]
    assert not cache.exists()
    assert not environment.exists()
    assert (tmp_path / "shared" / "2.15.0").exists()
    assert matrix.remembered() == rows
