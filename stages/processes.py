"""Fresh processes that start quickly, for checks and proofs.

Importing torch takes two seconds; so a server process imports torch and
compiles the library, without importing fx, and each check runs in a fork of
that process.  Nothing here needs the fork: with the start method `spawn`, which
Windows and macOS have, each process imports torch for itself, and a check
takes some seconds longer.  `STAGES_START_METHOD=spawn` asks for it elsewhere.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from typing import Final

PLAIN: Final = (
    "--color=no",
    "--assert=plain",
    *("-p", "no:cacheprovider"),
    # These two collect garbage three times, which with torch takes a second.
    *("-p", "no:unraisableexception"),
    *("-p", "no:threadexception"),
)
"""pytest's options if a program runs it: plain output, and no cache."""


SWITCH: Final = "STAGES_START_METHOD"
"""A variable of the environment that can ask for "spawn"."""


def start_method() -> str:
    """How the processes start: "forkserver", or "spawn" where that is usual.

    It is usual where it is Python's default, which `set_start_method` and
    SWITCH can change.  A fork on macOS may crash, although there is one.
    """
    usual, *others = multiprocessing.get_all_start_methods()
    chosen = multiprocessing.get_start_method(allow_none=True)
    asked = os.environ.get(SWITCH) or chosen or usual
    spawns = asked == "spawn" or "forkserver" not in (usual, *others)
    return "spawn" if spawns else "forkserver"


@contextmanager
def pool(workers: int = 2) -> Iterator[ProcessPoolExecutor]:
    """An executor that runs each job in a new process, with torch imported."""
    context = multiprocessing.get_context(start_method())
    context.set_forkserver_preload(["stages.warm"])
    with ProcessPoolExecutor(
        workers, context, _prepare, max_tasks_per_child=1
    ) as executor:
        yield executor


def process(target: Callable[..., None], args: Iterable[object]) -> BaseProcess:
    """A process that is not started, with torch imported where it can be."""
    if start_method() == "spawn":
        return multiprocessing.get_context("spawn").Process(
            target=target, args=args
        )
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["stages.warm"])
    return context.Process(target=target, args=args)


def _prepare() -> None:
    """Set before a job what `stages.warm` has set for forks."""
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
