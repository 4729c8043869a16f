"""A learner's folder to spoil, and processes to check it in."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from stages.running import pool
from stages.workspace import lay_out
from tests.course.learner import Learner


@pytest.fixture(scope="session")
def executor() -> Iterator[ProcessPoolExecutor]:
    """Processes in which checks run; torch is imported once for all."""
    with pool() as processes:
        yield processes


@pytest.fixture(scope="session", autouse=True)
def _whole() -> None:
    """The exercises of this clone with the copies that git does not have."""
    lay_out()


@pytest.fixture
def learner(tmp_path: Path, executor: ProcessPoolExecutor) -> Learner:
    """Somebody who has just cloned the project."""
    return Learner.new(tmp_path / "exercises", executor)
