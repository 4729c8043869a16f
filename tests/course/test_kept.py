"""What a learner wrote in an earlier version is carried over to this one."""

from __future__ import annotations

import shutil
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from stages.functions import State
from stages.workspace import MOVED, lay_out, update
from tests.course.kept.write import OWN, STAGES, WRITTEN
from tests.course.learner import Learner

HERE = Path(__file__).parent / "kept"


@pytest.mark.parametrize("version", sorted(p.stem for p in HERE.glob("*.zip")))
def test_an_update_carries_over_what_was_written(
    version: str, tmp_path: Path, executor: ProcessPoolExecutor
) -> None:
    folder = tmp_path / "exercises"
    shutil.unpack_archive(HERE / f"{version}.zip", folder)
    names = (folder / WRITTEN).read_text().split()
    parts = [name.partition(".") for name in names]
    written = [f"{MOVED.get(room, room)}.{rest}" for room, _, rest in parts]
    began = sum(OWN in path.read_text() for path in folder.rglob("*.py"))
    learner = Learner(folder, executor)
    lay_out(learner.work)
    assert update(learner.work).conflicts == {}
    states = learner.tree().states()
    found = [name for name in states if states[name] is State.WRITTEN]
    assert sorted(found) == sorted(written)
    texts = [path.read_text() for path in (folder / "fx").rglob("*.py")]
    assert sum(OWN in text for text in texts) == began > 4
    result = learner.check(*STAGES)
    verdicts = {name: result.verdicts[name] for name in written}
    assert {*verdicts.values()} <= {*"✓·"}, (verdicts, result.output)
