"""Check a stage whenever one of the learner's files is saved.

A save is answered by the tests of the exercise that it changed.  If they pass,
those of the whole stage follow.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor, wait
from typing import Final, TypeAlias

from rich.console import Console
from rich.progress import Progress
from watchfiles import PythonFilter
from watchfiles import watch as changes

from stages import functions
from stages.manifest import EXERCISES, Piece, stages
from stages.report import header
from stages.running import Job, pool, run_all
from stages.tree import Broken, Tree

WARM: Final = 8.0
"""The seconds that the bar of the first import is long."""

Sources: TypeAlias = Mapping[Piece, str]
"""The exercises of a stage -> their functions as the learner has them."""


def watch(number: int, console: Console | None = None) -> int:
    """Check now, and after each save, until Ctrl-C.

    Args:
        number: the stage.
        console: where to print.
    """
    console = console or Console(highlight=False)
    tree = Tree(EXERCISES / "fx", under_test=[number])
    with pool(1) as executor:
        before = sources(tree)
        console.print(header(tree, [number]), markup=False)
        _warm_up(executor, console)
        _check(tree, None, executor, console)
        for saved in changes(
            tree.root,
            watch_filter=PythonFilter(),
            raise_interrupt=False,
            debounce=200,
            step=20,
        ):
            if saved:
                now = sources(tree)
                piece = changed(before, now)
                before = now
                if piece is None or _check(tree, piece, executor, console):
                    _check(tree, None, executor, console)
    return 0


def _warm_up(executor: ProcessPoolExecutor, console: Console) -> None:
    """Wait until a process has imported torch, with a bar."""
    console.print(
        "Importing torch, once: 5 s, and half a minute if the machine is busy. "
        "After that, a save is answered in a few seconds."
    )
    began, job = time.monotonic(), executor.submit(time.monotonic)
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("warming up", total=WARM)
        while not job.done():
            wait([job], 0.2)
            bar.update(task, completed=time.monotonic() - began)


def sources(tree: Tree) -> Sources:
    """The stage's exercises as they are; empty if a file cannot be read."""
    try:
        return {
            piece: "".join(
                functions.source_of(tree.text(one.file), one.qualname)
                for one in piece.functions
            )
            for number in tree.under_test
            for piece in stages()[number].pieces
        }
    except (Broken, LookupError, SyntaxError):
        return {}


def changed(before: Sources, now: Sources) -> Piece | None:
    """The only exercise that a save has changed; None if there are others."""
    found = [piece for piece in now if now[piece] != before.get(piece)]
    return found[0] if len(found) == 1 else None


def _check(
    tree: Tree,
    piece: Piece | None,
    executor: ProcessPoolExecutor,
    console: Console,
) -> bool:
    """Check an exercise, or the stage, and print what was said.

    Returns:
        Whether all tests passed.
    """
    began = time.perf_counter()
    (number,) = tree.under_test
    name = piece.title if piece else None
    (result,) = run_all([Job(tree, [number], exercise=name)], executor)
    console.clear()
    console.print(result.output, markup=False)
    took = time.perf_counter() - began
    console.print(f"{took:.1f} s · waiting for a save (Ctrl-C ends)")
    return result.status == 0
