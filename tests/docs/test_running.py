"""What programs print is kept, and never older than the code."""

from __future__ import annotations

import ast
import itertools
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

import fx
from docs.examples.library_pass import relu_to_gelu
from docs.machinery import running
from docs.machinery.standalone import SAVED, standalone
from tests.docs.test_pages import PAGES, blocks


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of fx, in a project of its own, where runs are counted."""
    file = tmp_path / "fx" / "a.py"
    file.parent.mkdir()
    file.write_text("1")
    runs = itertools.count(1)
    monkeypatch.setattr(running, "ROOT", tmp_path)
    monkeypatch.setattr(running, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(running, "_run", lambda *_: f"run {next(runs)}")
    return file


def test_nothing_is_run_twice(code: Path) -> None:
    assert running.film("t") == "run 1"
    assert running.film("t") == "run 1"
    assert running.film("u") == "run 2"
    assert running.answer({"t": 1}) == "run 3"


def test_another_text_of_the_code_is_run_anew(code: Path) -> None:
    assert running.film("t") == "run 1"
    code.write_text("2")
    assert running.film("t") == "run 2"
    code.with_name("b.py").write_text("")
    assert running.film("t") == "run 3"
    code.with_name("b.py").unlink()
    assert running.film("t") == "run 2"


def test_what_ran_while_the_code_changed_is_not_kept(
    code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: str) -> str:
        code.write_text("2")
        return "of which code?"

    monkeypatch.setattr(running, "_run", run)
    assert running.film("t") == "of which code?"
    assert not list(code.parents[1].glob("cache/*"))


def test_a_program_is_run_with_the_code_of_this_project() -> None:
    said = running.printed("docs.examples.predict_01.several_after")
    assert said == "x second first\n"


def test_an_error_is_told_and_not_kept() -> None:
    for _ in range(2):
        with pytest.raises(running.Failed, match="no attribute 'film'"):
            running.film("docs.examples.predict_01")


EXAMPLES = sorted(
    {
        block.argument
        for page in PAGES
        for block in blocks(page)
        if block.name in ("run", "predict")
    }
)


@pytest.mark.parametrize("target", EXAMPLES)
def test_an_example_is_a_program_that_can_be_pasted(target: str) -> None:
    """It imports nothing of the course, and prints what the page shows.

    The worker that runs it refuses such imports (the next test).
    """
    text = standalone(target)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            assert node.module and _may_import(node.module)
        elif isinstance(node, ast.Import):
            assert all(_may_import(one.name) for one in node.names)
    assert running.printed(target).strip()


def _may_import(module: str) -> bool:
    """Whether who has fx has the module too."""
    top = module.partition(".")[0]
    return top in {*sys.stdlib_module_names, *SAVED, "torch", "fx"}


@pytest.mark.parametrize(
    "line",
    [
        "import stages.residual",
        "from docs.examples import home",
        "import tests",
    ],
)
def test_an_example_cannot_import_the_course(line: str) -> None:
    request: dict[str, object] = {"target": "t", "name": "t.py", "text": line}
    request["beside"] = {}
    with pytest.raises(running.Failed, match="ModuleNotFoundError: "):
        running.answer(request)


def test_an_example_brings_what_it_uses_and_nothing_else() -> None:
    text = standalone("docs.examples.library_pass")
    assert text.startswith("import torch\nfrom torch.nn import functional\n")
    assert text.count("class Residual(torch.nn.Module):") == 1
    assert text.index("class Residual") < text.index("def main")
    assert text.endswith("\n\n\nmain()")
    one = standalone("docs.examples.predict_03.bound_again")
    assert "def begin" in one
    assert "late_fetch" not in one
    assert "TraceError" not in one


def test_tiny_fx_is_imported_as_the_file_that_its_reader_saved() -> None:
    text = standalone("docs.examples.tiny_steps.by_hand")
    assert "\nfrom tiny_fx import Graph\n" in text
    assert "docs.examples" not in text
    assert "class Graph" not in text


def test_the_first_pass_changes_each_kind_of_relu() -> None:
    gm = fx.symbolic_trace(lambda x: functional.relu(torch.relu(x).relu()))
    assert relu_to_gelu(gm) == 3
    assert relu_to_gelu(fx.symbolic_trace(nn.Sequential(nn.ReLU()))) == 1
