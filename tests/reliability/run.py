"""Running parts, each in a process of its own, on fx/ or on a copy of it."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.connection import Connection, wait
from pathlib import Path

import torch

from tests.reliability.part import Outcome, Part, Plant

HERE = Path(__file__).parent
ROOT = HERE.parent.parent

LIMIT = 600.0
"""Seconds that a run of a part against a planted fault may take."""


def names() -> list[str]:
    """The parts: the files of this folder that define `PART`."""
    files = sorted(HERE.glob("*.py"))
    return [file.stem for file in files if "\nPART = Part(" in file.read_text()]


def load(name: str) -> Part:
    """The part of a file; only now is fx imported."""
    part: Part = import_module(f"tests.reliability.{name}").PART
    return part


@dataclass
class Found:
    """What a run of a part has found.

    Attributes:
        name: of the part.
        compares: what it compares, for the table.
        cases: how many were tried.
        wrong: the cases that fx got wrong.
        theirs: how many torch.fx got wrong; None if it was not asked.
        seconds: that the run took.
        broken: the traceback, if the part itself failed.
        crashed: whether a signal ended it, as when memory is used wrongly.
        plants: the faults that it must find.
    """

    name: str
    compares: str = ""
    cases: int = 0
    wrong: list[Outcome] = field(default_factory=list)
    theirs: int | None = None
    seconds: float = 0.0
    broken: str = ""
    crashed: bool = False
    plants: tuple[Plant, ...] = ()

    def add(self, outcome: Outcome) -> None:
        """Count a case."""
        self.cases += 1
        if outcome.ours:
            self.wrong.append(outcome)
        if outcome.theirs is not None:
            self.theirs = (self.theirs or 0) + bool(outcome.theirs)


def search(
    name: str,
    seed: int,
    *,
    long: bool,
    first: bool = False,
    seconds: float = float("inf"),
) -> Found:
    """Run a part in this process.

    Args:
        name: of the part.
        seed: what the cases are drawn from.
        long: whether to try as many as `make fuzz` does.
        first: whether the first wrong case is enough.
        seconds: after how long to stop.
    """
    found, start = about(name), time.perf_counter()
    if found.broken:
        return found
    try:
        part = load(name)
        for outcome in part.run(seed, part.long if long else part.share):
            found.add(outcome)
            enough = first and found.wrong
            if enough or time.perf_counter() - start > seconds:
                break
    except Exception:
        case = f"seed {seed}, after case {found.cases}"
        found.add(Outcome(case, traceback.format_exc()))
    found.seconds = time.perf_counter() - start
    return found


def about(name: str) -> Found:
    """What a part says of itself: no case is tried."""
    found = Found(name)
    try:
        part = load(name)
        found.compares, found.plants = part.compares, part.plants
    except Exception:
        found.broken = traceback.format_exc()
    return found


# -- a process for each run ------------------------------------------------

Job = Callable[[], Found]


def _child(job: Job, results: Connection) -> None:
    """What a new process does; what it prints is not of interest."""
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    results.send(job())
    results.close()
    # Threads that hang, and what torch does at exit, are of no interest.
    os._exit(0)


@dataclass
class _Running:
    """A process that runs a job."""

    key: str
    process: multiprocessing.process.BaseProcess
    until: float


def in_processes(
    jobs: Mapping[str, Job], count: int, limit: float
) -> Iterator[tuple[str, Found]]:
    """Run jobs, `count` at a time, each in a fork of this process.

    Forked, they need not import torch again, which takes seconds. This
    process must have imported neither fx nor what imports it.

    Args:
        jobs: what to run, by a name.
        count: how many at a time.
        limit: the seconds that each may take.

    Yields:
        The name of a job that has ended, and what it found.
    """
    assert "fx" not in sys.modules
    # OpenMP's threads do not survive a fork.
    torch.set_num_threads(1)
    context = multiprocessing.get_context("fork")
    waiting, running = list(jobs), dict[Connection, _Running]()
    while waiting or running:
        while waiting and len(running) < count:
            key = waiting.pop(0)
            here, there = context.Pipe(duplex=False)
            process = context.Process(target=_child, args=(jobs[key], there))
            process.start()
            there.close()
            until = time.monotonic() + limit
            running[here] = _Running(key, process, until)
        soonest = min(one.until for one in running.values())
        ready = wait(list(running), max(0.0, soonest - time.monotonic()))
        late = [c for c in running if running[c].until <= time.monotonic()]
        for connection in {*ready, *late}:
            assert isinstance(connection, Connection)
            one = running.pop(connection)
            yield one.key, _result(one, connection)


def _result(one: _Running, results: Connection) -> Found:
    """What a process has sent; it is ended."""
    try:
        if results.poll():
            found: Found = results.recv()
            return found
        return Found(one.key, broken="it did not come to its end")
    except EOFError:
        one.process.join()
        code = one.process.exitcode or 0
        died = f"its process died: exit code {code}"
        return Found(one.key, broken=died, crashed=code < 0)
    finally:
        results.close()
        one.process.kill()
        one.process.join()


# -- planted faults --------------------------------------------------------


def planted(plant: Plant, folder: Path) -> None:
    """Write a copy of fx/ with a fault into a folder.

    Raises:
        ValueError: if the text to replace is not there exactly once.
    """
    shutil.copytree(
        ROOT / "fx", folder / "fx", ignore=shutil.ignore_patterns("__pycache__")
    )
    file = folder / plant.file
    text = file.read_text()
    if text.count(plant.was) != 1:
        count = text.count(plant.was)
        raise ValueError(f"{plant.file} has {count} times: {plant.was!r}")
    file.write_text(text.replace(plant.was, plant.becomes))


def search_planted(name: str, plant: Plant, seed: int, *, long: bool) -> Found:
    """Run a part against a copy of fx/ with a fault, until it finds it."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            planted(plant, Path(folder))
        except (OSError, ValueError) as problem:
            return Found(name, broken=f"the fault cannot be planted: {problem}")
        sys.path.insert(0, folder)
        os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
        found = search(name, seed, long=long, first=True)
        imported = str(sys.modules["fx"].__file__)
        assert imported.startswith(folder), imported
    return found
