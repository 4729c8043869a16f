"""What is left out beside older versions of torch, and the table of rows."""

from __future__ import annotations

import tomllib

from tests.process import ROOT
from tests.versions.row import HEAD, WITHOUT, left_out, with_row

PAGE = f"""
<!-- matrix: begin -->

{HEAD}
|---|---|--:|--:|---|---|
| 3.12.1 | 2.9.1 | 3,500 | 90 | none | 2026-01-01 |
| 3.12.1 | 2.15.0 | 3,600 | 0 | none | 2026-01-01 |

<!-- matrix: end -->
"""


def test_each_test_that_is_left_out_exists() -> None:
    oldest = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert oldest["project"]["dependencies"] == ["torch>=2.9"]
    assert list(WITHOUT) == ["2.9"]
    tests = [test for group in left_out("2.9.1").values() for test in group]
    assert len(tests) > 10
    for test in tests:
        path, _, name = test.partition("::")
        assert name.partition("[")[0] in (ROOT / path).read_text("utf-8")


def test_a_row_takes_the_place_of_the_older_one() -> None:
    row = ("3.12.4", "2.15.1+cu132", "3,601", "0", "a.py::f[x|y]", "2026-02-02")
    lines = with_row(PAGE, row)
    assert lines[2:5] == [
        "| 3.12.1 | 2.9.1 | 3,500 | 90 | none | 2026-01-01 |",
        f"| {' | '.join(row)} |".replace("x|y", "x\\|y"),
        "",
    ]
    assert lines[5].startswith("- Left out beside torch 2.9, as it cannot")


def test_a_row_is_added_by_its_versions() -> None:
    lines = with_row(PAGE, ("3.11.2", "2.10.0", "1", "2", "none", "day"))
    assert [line[:17] for line in lines[2:5]] == [
        *("| 3.12.1 | 2.9.1 ", "| 3.11.2 | 2.10.0", "| 3.12.1 | 2.15.0")
    ]
