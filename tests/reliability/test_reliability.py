"""A share of the search, and a fault of each part that it must find."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.process import python
from tests.reliability import run
from tests.reliability.part import Outcome
from tests.reliability.patched import marked, patched

PARTS = run.names()


@pytest.mark.parametrize("name", PARTS)
def test_nothing_is_wrong(name: str) -> None:
    part = run.load(name)
    before, functions = patched(), marked()
    outcomes = list(part.run(0, part.share))
    assert patched() == before, "later tests would see what it left"
    for namespace, marks, function in functions:
        assert namespace[marks] is function, "a mark is left replaced"
    assert len(outcomes) >= part.share // 2
    wrong: list[Outcome] = [found for found in outcomes if found.ours]
    assert wrong == []


@pytest.mark.parametrize("name", PARTS)
def test_each_fault_can_be_planted(name: str, tmp_path: Path) -> None:
    """Once, and without a name that the file does not have.

    A NameError would look like a refusal to the search.
    """
    for number, plant in enumerate(run.load(name).plants):
        text = (run.ROOT / plant.file).read_text()
        assert text.count(plant.was) == 1, plant
        file = tmp_path / f"plant_{number}.py"
        file.write_text(text.replace(plant.was, plant.becomes))
    done = python("-m", "ruff", "check", "-q", "--select=F821", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr


def test_planted_faults_are_found() -> None:
    """In two parts, so that planting works; `make fuzz` plants all."""
    done = python("-m", "tests.reliability", "--plants", "edits", "folding")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 faults planted, 0 not found" in done.stdout
