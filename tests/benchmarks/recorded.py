"""The ratios of an earlier commit, and which rows have become slower since.

    python -m tests.benchmarks --record      # add a run to them
    python -m tests.benchmarks --compare     # compare with them

How long a run takes depends on the machine, so what is recorded of each row
is its ratio torch/ours.  It also depends on what the process did before: each
row is measured in a child process, which begins with nothing but the imports.
Several runs are recorded, and their median counts.  A row that is more than
10 % below that is measured again with twice as many rounds.  If it is below
again, the machine may have changed since: `commit` is the one whose fx was
recorded, and that fx is measured now, in turn with this one.  The row is slower
if it is more than 10 % below what the old fx reaches today.

To begin anew, delete recorded.toml.
"""

from __future__ import annotations

import io
import json
import math
import os
import pickle
import platform
import statistics
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TypeAlias

import torch

from tests.benchmarks.measure import Rounds
from tests.benchmarks.operations import Benchmark
from tests.benchmarks.report import DifferentWork, Row, measured
from tests.process import fork

__all__ = [
    "FILE",
    "LOST",
    "ROUNDS",
    "Change",
    "Ratios",
    "Recorded",
    "apart",
    "as_toml",
    "beside_the_recorded",
    "compare",
    "complaint",
    "header",
    "line",
    "load",
    "measured_again",
    "releases",
]

FILE = Path(__file__).with_name("recorded.toml")

LOST = 0.1
"""The share of its recorded ratio that a row may lose."""

ROOT = Path(__file__).parents[2]
"""The root of the project."""

TURNS = 5
"""How often the recorded fx and this one are measured, in turn."""

ROUNDS = Rounds(most=15, least=5, budget=2.0, too_slow=math.inf)
"""At least five rounds of each row, however slow; more of the fast ones."""

Ratios: TypeAlias = dict[tuple[str, int], list[float]]
"""Operation and size -> torch/ours in each recorded run."""


# -- the file --------------------------------------------------------------


def releases() -> str:
    """The releases of Python and torch that run now."""
    return f"Python {platform.python_version()}, torch {torch.__version__}"


@dataclass(frozen=True)
class Recorded:
    """What the file holds.

    Attributes:
        commit: whose fx was measured; "" if that is not known.
        since: when it was last written, and with which releases.
        ratios: the rows.
    """

    commit: str
    since: str
    ratios: Ratios


def as_toml(ratios: Ratios, day: date, commit: str) -> str:
    """The file: of what, when and with what it was written, then the rows."""
    lines = [
        "# torch/ours of each size in each run, for `make bench-check`.",
        "# Written by `python -m tests.benchmarks --record`.",
        f'commit = "{commit}"',
        f"date = {day}",
        f'releases = "{releases()}"',
    ]
    above = ""
    for (name, size), runs in ratios.items():
        if name != above:
            lines += ["", f"[ratio.{name}]"]
            above = name
        lines.append(f"{size} = [{', '.join(f'{run:.2f}' for run in runs)}]")
    return "\n".join(lines) + "\n"


def load(text: str) -> Recorded:
    """Read what `as_toml` has written."""
    table = tomllib.loads(text)
    ratios = {
        (name, int(size)): [float(run) for run in runs]
        for name, sizes in table["ratio"].items()
        for size, runs in sizes.items()
    }
    since = f"{table['date']}, {table['releases']}"
    return Recorded(table["commit"], since, ratios)


def git(*command: str) -> bytes:
    """What git prints; nothing if it fails or is not installed."""
    try:
        done = subprocess.run(
            ["git", *command], cwd=ROOT, capture_output=True, check=False
        )
    except FileNotFoundError:
        return b""
    return b"" if done.returncode else done.stdout


# -- comparing -------------------------------------------------------------


def apart(bench: Benchmark, size: int, rounds: Rounds) -> Row:
    """Measure an operation in a child of this process.

    Raises:
        DifferentWork: the libraries do not do the same.
        RuntimeError: the child ended without an answer.
    """
    reader, writer = os.pipe()
    child = fork()
    if not child:
        answer: Row | DifferentWork | None = None
        try:
            answer = measured(bench, size, rounds)
        except DifferentWork as problem:
            answer = problem
        except Exception:
            traceback.print_exc()
        finally:
            with os.fdopen(writer, "wb") as pipe:
                pickle.dump(answer, pipe)
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        found = pickle.load(pipe)
    os.waitpid(child, 0)
    if isinstance(found, DifferentWork):
        raise found
    if not isinstance(found, Row):
        raise RuntimeError(f"{bench.name} at {size}: the child failed")
    return found


@dataclass(frozen=True)
class Change:
    """A row beside its recorded ratio.

    Attributes:
        bench: the operation.
        row: as it was measured now.
        runs: its recorded ratios; none if the file does not have it.
    """

    bench: Benchmark
    row: Row
    runs: Sequence[float] = ()

    @property
    def recorded(self) -> float | None:
        """The median of the recorded runs."""
        return statistics.median(self.runs) if self.runs else None

    @property
    def share(self) -> float:
        """By what share the ratio is better; negative if it is worse."""
        return self.row.ratio / self.recorded - 1 if self.recorded else 0.0

    @property
    def is_slower(self) -> bool:
        """Whether the row has lost more than it may."""
        return self.share < -LOST


def compare(
    benchmarks: Iterable[Benchmark], ratios: Ratios
) -> Iterator[Change]:
    """Measure each row, at all its sizes, beside its recorded ratio."""
    for bench in benchmarks:
        for size in bench.sizes:
            row = apart(bench, size, ROUNDS)
            yield Change(bench, row, ratios.get((bench.name, size), ()))


def measured_again(change: Change) -> Change:
    """Measure a row anew, with twice as many rounds."""
    twice = replace(
        ROUNDS,
        most=2 * ROUNDS.most,
        least=2 * ROUNDS.least,
        budget=2 * ROUNDS.budget,
    )
    row = apart(change.bench, change.row.size, twice)
    return replace(change, row=row)


def beside_the_recorded(change: Change, commit: str) -> Change | None:
    """Measure the fx of a commit and this one in turn, a row in each child.

    Returns:
        The change from the one to the other; None if git does not have the
        commit, or its fx cannot do this.
    """
    archive = git("archive", commit, "fx")
    if not commit or not archive:
        return None
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(folder, filter="data")
        then, now = [], []
        for _ in range(TURNS):
            old = _ratio_with(folder, change)
            new = _ratio_with(str(ROOT), change)
            if old is None or new is None:
                return None
            then.append(old)
            now.append(new)
    row = replace(change.row, ratio=statistics.median(now), ratios=now)
    return replace(change, row=row, runs=then)


def _ratio_with(folder: str, change: Change) -> float | None:
    """The ratio of a row in a process that finds fx in `folder`."""
    row = change.row
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [sys.executable, "-P", "-m", "tests.benchmarks"]
        command += ["--only", row.name, "--size", str(row.size)]
        subprocess.run(
            [*command, "--json", file.name],
            env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"},
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            check=False,
        )
        text = Path(file.name).read_text(encoding="utf-8")
    rows = json.loads(text)["rows"] if text else []
    ratios = [one["ratio"] for one in rows if one["name"] == row.name]
    return float(ratios[0]) if ratios else None


# -- text ------------------------------------------------------------------

_LAYOUT = "{:<26}{:>8}{:>10}{:>10}{:>9}   {}"


def header() -> str:
    """The head of the table."""
    names = "operation", "size", "recorded", "now", "change", "rounds"
    return f"{_LAYOUT.format(*names)}\n{'-' * 78}"


def line(change: Change) -> str:
    """A row: recorded, now, and from where to where its rounds went."""
    row = change.row
    known = change.recorded is not None
    return _LAYOUT.format(
        row.name,
        f"{row.size:,}",
        f"{change.recorded:.2f}" if known else "none",
        f"{row.ratio:.2f}",
        f"{change.share:+.0%}" if known else "",
        f"{min(row.ratios):.2f} to {max(row.ratios):.2f} in {len(row.ratios)}",
    )


def complaint(change: Change) -> str:
    """What is said of a row that is slower."""
    row = change.row
    return (
        f"{row.name} at {row.size:,} is slower: recorded "
        f"{change.recorded:.2f}, now {row.ratio:.2f} ({change.share:+.0%})"
    )
