"""Fresh processes that start quickly, for checks and proofs.

Importing torch takes two seconds; so a server process imports torch and
compiles the library, without importing fx, and each check runs in a fork of
that process.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
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


@contextmanager
def pool(workers: int = 2) -> Iterator[ProcessPoolExecutor]:
    """An executor that runs each job in a new process, with torch imported."""
    known = multiprocessing.get_all_start_methods()
    # Windows cannot fork: there, each process imports torch for itself.
    context = multiprocessing.get_context(
        "forkserver" if "forkserver" in known else "spawn"
    )
    context.set_forkserver_preload(["stages.warm"])
    with ProcessPoolExecutor(
        workers, mp_context=context, max_tasks_per_child=1
    ) as executor:
        yield executor
