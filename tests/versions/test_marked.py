"""A run that leaves out a test marked `newest` is red."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.process import ROOT, python
from tests.versions.marked import marked_in, marked_places, not_run

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


def test_each_place_with_the_mark_is_found() -> None:
    assert list(marked_in(SOURCE)) == ["test_f", "TestC::test_g"]
    assert list(marked_in(f"pytestmark = [{MARK}]")) == [""]
    assert list(marked_in(f"@{MARK}\nclass TestD: ...")) == ["TestD"]
    assert list(marked_in("x = item.get_closest_marker('newest')")) == []


def test_what_did_not_run_is_told() -> None:
    places = ["a.py::f", "a.py::C", "b.py", "c.py::g", "d.py"]
    ran = ["a.py::f[1]", "a.py::C::h", "b.py::x"]
    assert not_run(places, [*ran, "a.py::f[2]"], ran) == [
        *("a.py::f[2]", "c.py::g", "d.py")
    ]
    places = ["c.py", "c.py::g"]
    assert not_run(places, ["c.py::g[1]"], []) == ["c.py::g[1]"]
    assert not_run([], [], []) == []


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


def test_a_marked_file_that_was_not_asked_for_is_told(tmp_path: Path) -> None:
    for folder, text in (("tests/x", SOURCE), ("stages/01", "x = 1")):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "test_a.py").write_text(text)
    assert list(marked_places(tmp_path)) == [
        *("tests/x/test_a.py::test_f", "tests/x/test_a.py::TestC::test_g")
    ]
