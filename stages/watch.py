"""Check a stage whenever one of the learner's files is saved."""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor

from rich.console import Console
from watchfiles import PythonFilter
from watchfiles import watch as changes

from stages.manifest import EXERCISES
from stages.processes import pool
from stages.running import Job, run_all
from stages.tree import Tree


def watch(number: int, console: Console | None = None) -> int:
    """Check now, and after each save, until Ctrl-C.

    Types are not checked, because mypy takes too long for that.

    Args:
        number: the stage.
        console: where to print.
    """
    console = console or Console(highlight=False)
    with pool(1) as executor:
        _check(number, executor, console)
        for _ in changes(
            EXERCISES / "fx",
            watch_filter=PythonFilter(),
            raise_interrupt=False,
            debounce=200,
        ):
            _check(number, executor, console)
    return 0


def _check(
    number: int, executor: ProcessPoolExecutor, console: Console
) -> None:
    """Run the check and print its output."""
    began = time.perf_counter()
    tree = Tree(EXERCISES / "fx", under_test=[number])
    (result,) = run_all([Job(tree, [number])], executor)
    console.clear()
    console.print(result.output, markup=False)
    took = time.perf_counter() - began
    console.print(
        f"{took:.1f} s · types: pytest stages/{number:02d} · "
        f"waiting for a save (Ctrl-C ends)"
    )
