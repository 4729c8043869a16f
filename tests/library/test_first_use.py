"""`import fx` is quick, because much is imported when it is first used."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Final

import pytest

import fx
from fx.compat.first_use import importer
from tests.benchmarks import start
from tests.process import printed

BESIDE: Final = 4.8
"""How many times as long as asyncio fx may take to import, whatever the
machine: it is the goal of `make bench` where asyncio takes 12.5 ms. On busy
cores it took 3.4 to 4.4 times as long."""


def test_import_takes_no_longer_than_the_goal() -> None:
    ratios = [ours / asyncio for ours, asyncio in start.times(7)]
    assert statistics.median(ratios) < BESIDE


def test_what_import_takes_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "fx").mkdir()
    (tmp_path / "fx/__init__.py").write_text("sum(range(3 * 10**7))\n")
    [found] = start.times(1, tmp_path)
    assert found[0] > max(start.GOAL, BESIDE * found[1])
    assert "MISSED" in start.line([found])


def test_names_are_found_at_first_use_in_either_order() -> None:
    said = printed(
        "-c",
        "import sys, fx\n"
        "late = ('fx.show.page', 'fx.passes.shape_prop', 'fx.reinplacing',\n"
        "        'fx.extra.saving.saved_graph',\n"
        "        'fx.experimental.proxy_tensor')\n"
        "print([name for name in late if name in sys.modules])\n"
        "import fx.show.page, fx.show\n"
        "print(fx.show is fx.show.__globals__['show'], fx.load.__name__)\n"
        "print(fx.passes.shape_prop.ShapeProp.__name__, hasattr(fx, 'no'))\n"
        "from fx import *\n"
        "print(diff.__name__, issubclass(LoadError, ValueError))\n",
    )
    assert said.splitlines() == [
        "[]",
        "True load",
        "ShapeProp False",
        "diff True",
    ]


def test_a_module_that_cannot_be_imported_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "late_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "needy.py").write_text("import a_module_that_nobody_has\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    find = importer("late_package", {})
    with pytest.raises(ModuleNotFoundError, match="that_nobody_has"):
        find("needy")
    with pytest.raises(AttributeError, match="has no attribute 'other'"):
        find("other")


def test_completion_finds_them() -> None:
    assert {"GuardError", "diff", "load", "show", "trace"} < {*dir(fx)}
