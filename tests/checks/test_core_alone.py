"""The stages without extra, passes and the end of fx/__init__.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.checks.floors import FRONT, write_prefix
from tests.checks.sources import Source, library
from tests.process import ROOT, python

MARK = "# -- extra ---"
"""The line in fx/__init__.py below which is what the stages do not need."""


def write_core(sources: list[Source], root: Path) -> None:
    """Write the files of all stages, and the package's own up to the mark."""
    write_prefix(sources, 8, root)
    front = next(source for source in sources if str(source.path) == FRONT)
    stages, mark, _ = front.text.partition(MARK)
    assert mark, f"{FRONT} has no line {MARK}"
    (root / FRONT).write_text(stages, encoding="utf-8")


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an fx of the stages alone."""
    folder = tmp_path_factory.mktemp("core")
    write_core(library(), folder)
    names = {path.name for path in (folder / "fx").iterdir()}
    assert names.isdisjoint({"extra", "compat", "show"})
    return folder


def test_two_networks_go_through_all_stages(core: Path) -> None:
    paths = {"PYTHONPATH": f"{core}:{ROOT}"}
    done = python("-m", "tests.checks.core_alone", cwd=core, env=paths)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(core)), "this was another fx"
    assert "resnet18 71 nodes" in done.stdout
    assert "bert_base 29 nodes" in done.stdout


def test_it_type_checks(core: Path) -> None:
    done = python(
        *("-m", "mypy", "--strict", "--no-error-summary", "fx"), cwd=core
    )
    assert done.returncode == 0, done.stdout


def test_a_stage_that_needs_extra_is_seen(tmp_path: Path) -> None:
    """The import that is written into a stage is not there in the copy."""
    sources = library()
    write_core(sources, tmp_path)
    file = tmp_path / "fx/interpreter.py"
    text = file.read_text(encoding="utf-8")
    was = "from .graph import Graph\n"
    assert was in text
    new = f"{was}from .extra.effects import effects as effects\n"
    file.write_text(text.replace(was, new), encoding="utf-8")
    done = python("-c", "import fx", cwd=tmp_path)
    assert "No module named 'fx.extra'" in done.stderr
