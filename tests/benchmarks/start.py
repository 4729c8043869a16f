"""How long `import fx` takes, in a process that has imported torch.

    python -m tests.benchmarks.start 11 .

torch is imported once; then a forked child imports fx, as often as asked.  A
first child, which is not counted, compiles fx into a cache.  Others import
asyncio, which says how fast the machine is.  What is measured is the time of
the processor, collections of garbage included: torch leaves much behind, and a
full collection, of 100 ms, follows if fx makes too many objects.
"""

from __future__ import annotations

import gc
import importlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import torch

from tests.process import fork

__all__ = ["GOAL", "line", "times"]

GOAL: Final = 0.040
"""Seconds that the median may take."""

_ROOT: Final = Path(__file__).parents[2]


def times(runs: int = 11, root: Path = _ROOT) -> list[tuple[float, float]]:
    """Import fx so many times, and asyncio beside it.

    Args:
        runs: how many.
        root: the folder that holds `fx`.

    Returns:
        The seconds of fx and of asyncio in each run.

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
    lines = [line.split() for line in printed.splitlines()]
    return [(float(ours), float(other)) for ours, other in lines]


def line(found: Sequence[tuple[float, float]]) -> str:
    """What the table of benchmarks says of these times."""
    median = statistics.median(ours for ours, _ in found)
    verdict = "met" if median <= GOAL else "MISSED"
    return (
        f"import fx, torch imported before: {median * 1e3:.0f} ms, "
        f"goal {GOAL * 1e3:.0f}: {verdict}"
    )


def _import_in_child(package: str, cache: str) -> float:
    """Import a package in a forked process; the seconds that it took."""
    reading, writing = os.pipe()
    child = fork()
    if child == 0:
        status = 1
        try:
            sys.dont_write_bytecode, sys.pycache_prefix = False, cache
            for name in list(sys.modules):
                if name.partition(".")[0] == package:
                    del sys.modules[name]
            # Whether a collection of all that torch has made falls into the
            # import depends on what ran before.
            gc.disable()
            begun = time.process_time()
            importlib.import_module(package)
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
        for package in "fx", "asyncio":
            _import_in_child(package, cache)
        for _ in range(int(runs)):
            ours = _import_in_child("fx", cache)
            print(ours, _import_in_child("asyncio", cache))


if __name__ == "__main__":
    main(sys.argv[1:])
