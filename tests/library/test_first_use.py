"""`import fx` is quick, because much is imported when it is first used."""

from __future__ import annotations

from pathlib import Path

import pytest

import fx
from fx.compat.first_use import importer
from tests.benchmarks import start
from tests.process import printed


def test_what_import_takes_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "fx").mkdir()
    (tmp_path / "fx/__init__.py").write_text("sum(range(3 * 10**7))\n")
    [found] = start.times(1, tmp_path)
    assert found[0] > start.GOAL
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


def test_a_method_is_imported_when_a_subclass_asks_for_it() -> None:
    said = printed(
        "-c",
        "import sys, torch, fx\n"
        "class Own(fx.GraphModule):\n"
        "    def train(self, mode=True):\n"
        "        return super().train(mode)\n"
        "gm = Own({}, fx.symbolic_trace(lambda x: x + 1).graph)\n"
        "print('fx.extra.watching.fixed' in sys.modules, gm.eval() is gm)\n"
        "print(vars(fx.GraphModule)['train'].__name__)\n",
    )
    assert said.splitlines() == ["True True", "train"]


def test_no_mode_sees_an_import() -> None:
    said = printed(
        "-c",
        "import torch, fx\n"
        "from torch._subclasses import FakeTensorMode\n"
        "with FakeTensorMode():\n"
        "    fx.symbolic_trace(lambda x: isinstance(x, torch.Tensor))\n"
        "from fx.extra.watching import asking\n"
        "print(type(asking._A_TENSOR).__name__)\n",
    )
    assert said == "Tensor\n"
