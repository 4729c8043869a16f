"""A run that leaves out a test marked `newest` is red."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.process import ROOT, python

MARK = "pytest.mark." + "newest"

SOURCE = f"""
import pytest

@{MARK}
def test_f() -> None: ...

class TestC:
    @pytest.mark.parametrize("x", [1, pytest.param(2, marks={MARK})])
    def test_g(self, x: int) -> None: ...

    def test_h(self) -> None: ...
"""

CONFTEST = """
def pytest_collection_modifyitems(config, items):
    out = [item for item in items if "{name}" in item.nodeid]
    config.hook.pytest_deselected(items=out)
    items[:] = [item for item in items if item not in out]
"""


ONE = ["test_a.py::test_f"]
BOTH = ["test_a.py::TestC::test_g[2]", *ONE]


@pytest.mark.parametrize(
    ("left_out", "processes", "status", "missing"),
    [
        ("nothing", "2", 0, []),
        ("test_f", "2", 1, ONE),
        ("test_f", "0", 1, ONE),
        ("tests/", "2", 5, BOTH),
    ],
)
def test_a_run_that_leaves_a_marked_test_out_is_red(
    left_out: str,
    processes: str,
    status: int,
    missing: list[str],
    tmp_path: Path,
) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nmarkers = newest\naddopts = --import-mode=importlib\n"
    )
    (tmp_path / "tests" / "test_a.py").write_text(SOURCE)
    (tmp_path / "conftest.py").write_text(CONFTEST.format(name=left_out))
    run = python(
        *("-m", "pytest", "-q", "-n", processes, "-p", "no:cacheprovider"),
        *("-p", "tests.versions.marked", "tests"),
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
    )
    assert run.returncode == status, run.stdout + run.stderr
    ran = 2 - len(missing)
    lines = [
        f"{ran} tests marked newest ran, {len(missing)} did not",
        *(f"  did not run: tests/{test}" for test in missing),
    ]
    assert "\n".join(lines) in run.stdout
