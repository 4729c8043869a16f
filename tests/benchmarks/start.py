"""How long `import fx` takes, in a process that has imported torch.

    python -m tests.benchmarks.start

torch is imported once; then a forked child imports fx, as often as asked.  A
first child, which is not counted, compiles fx into a cache.  What is measured
is the time of the processor, collections of garbage included: torch leaves
much behind, and a full collection, of 100 ms, follows if fx makes too many
objects.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import torch

__all__ = ["GOAL", "line", "times"]

GOAL: Final = 0.060
"""Seconds that the median may take."""

_ROOT: Final = Path(__file__).parents[2]


def times(runs: int = 11, root: Path = _ROOT) -> list[float]:
    """Import fx so many times, and return the seconds of each, in order.

    Args:
        runs: how many.
        root: the folder that holds `fx`.

    Raises:
        CalledProcessError: fx does not import.
    """
    printed = subprocess.run(
        [sys.executable, "-m", __name__, str(runs), str(root)],
        cwd=_ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return sorted(map(float, printed.split()))


def line(found: Sequence[float]) -> str:
    """What the table of benchmarks says of these times.

    Args:
        found: of each run, in order.
    """
    median = found[len(found) // 2]
    verdict = "met" if median <= GOAL else "MISSED"
    return (
        f"import fx, torch imported before: {median * 1e3:.0f} ms, "
        f"goal {GOAL * 1e3:.0f}: {verdict}"
    )


def _import_in_child(cache: str) -> float:
    """Import fx in a forked process; the seconds that it took."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            sys.dont_write_bytecode, sys.pycache_prefix = False, cache
            begun = time.process_time()
            importlib.import_module("fx")
            taken = time.process_time() - begun
            os.write(writing, repr(taken).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with open(reading, encoding="utf-8") as pipe:
        taken = float(pipe.read())
    os.waitpid(child, 0)
    return taken


def main(arguments: Sequence[str]) -> None:
    """Print the seconds of each of so many imports from a folder."""
    assert torch.__version__
    assert "fx" not in sys.modules
    runs, root = arguments
    sys.path.insert(0, root)
    with tempfile.TemporaryDirectory() as cache:
        _import_in_child(cache)
        for _ in range(int(runs)):
            print(_import_in_child(cache))


if __name__ == "__main__":
    main(sys.argv[1:])
