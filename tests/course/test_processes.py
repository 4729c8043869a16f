"""Checks run in new processes, however these are started."""

from __future__ import annotations

import multiprocessing
import os
import sys
from pathlib import Path

import pytest

from stages import running
from stages.running import Job, run
from stages.tree import Tree
from tests.course.learner import Learner
from tests.process import printed

ASKS = "from stages.running import start_method; print(start_method())"


def test_where_spawning_is_usual_nothing_is_forked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(running.SWITCH, raising=False)
    if sys.platform == "linux":
        assert printed("-c", ASKS).strip() == "forkserver"
    assert printed("-c", ASKS, env={running.SWITCH: "spawn"}) == "spawn\n"
    chosen = f"import multiprocessing as m; m.set_start_method('spawn'); {ASKS}"
    assert printed("-c", chosen) == "spawn\n"
    monkeypatch.setattr(
        multiprocessing, "get_all_start_methods", lambda: ["spawn", "fork"]
    )
    monkeypatch.setattr(multiprocessing, "get_start_method", lambda **_: None)
    assert running.start_method() == "spawn"


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_a_check_is_the_same_in_both(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(running.SWITCH, method)
    with running.pool(1) as executor:
        learner = Learner.new(tmp_path, executor)
        learner.write("linked_list.linked_list.Link.prepend")
        job = Job(Tree(tmp_path / "fx", under_test=[1]), [1])
        result, again = executor.map(run, [job, job])
        first, second = executor.map(_asked, ["", ""])
    assert result._replace(output="") == again._replace(output="")
    assert result.to_write and not result.failed, result.output
    assert "✓" in result.signs["linked_list.linked_list.Link.prepend"]
    assert first[0] != second[0]
    assert first[1:] == second[1:] == ("1", "1", method == "forkserver")


def _asked(_: str) -> tuple[int, str, str, bool]:
    """Where a job runs, what is set there, and whether torch was there."""
    names = "OMP_NUM_THREADS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD"
    threads, plugins = (os.environ.get(name, "") for name in names)
    return os.getpid(), threads, plugins, "stages.warm" in sys.modules
