"""What the benchmarks say: one row for each operation and size."""

from __future__ import annotations

import difflib
import json
import platform
import statistics
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch

from tests.benchmarks.measure import Rounds, Samples, measure
from tests.benchmarks.operations import OURS, TORCH, Benchmark, Goal

__all__ = [
    "CLOSE",
    "DifferentWork",
    "Row",
    "as_json",
    "captions",
    "check_same_work",
    "header",
    "line",
    "measured",
    "verdicts",
]

CLOSE = 0.8
"""A goal of which this share is reached is missed by noise, perhaps."""

_TORCH, _OURS, _BESIDE = "torch", "ours", "beside"


class DifferentWork(Exception):
    """The libraries' results differ: their times cannot be compared."""


@dataclass(frozen=True)
class Row:
    """A line of the table.

    Attributes:
        name: of the operation.
        size: what was asked for, in nodes.
        count: how many nodes or calls there really were.
        unit: of `torch`, `ours` and `beside`.
        torch: median over the rounds.
        ours: median over the rounds.
        ratio: median of torch/ours of each round.
        ratios: of each round.
        goal: what shall be reached, if anything.
        label: what the third number is.
        beside: median of what ran beside both.
    """

    name: str
    size: int
    count: int
    unit: str
    torch: float
    ours: float
    ratio: float
    ratios: Sequence[float]
    goal: Goal | None
    label: str | None
    beside: float | None

    @property
    def reached(self) -> float | None:
        """How much of the goal is reached; None without a goal."""
        if self.goal is None:
            return None
        return self.goal.reached(self.ratio, self.ours, self.beside)

    @property
    def verdict(self) -> str:
        """Met, close or missed."""
        if self.reached is None:
            return ""
        if self.reached >= 1:
            return "met"
        return "close" if self.reached >= CLOSE else "MISSED"


def measured(
    bench: Benchmark, size: int, rounds: Rounds | None = None, tiny: int = 40
) -> Row:
    """Measure an operation at a size, if both libraries do the same.

    Args:
        bench: the operation.
        size: in nodes.
        rounds: how often.
        tiny: the size at which their results are compared, or `size` if that
            is less.

    Raises:
        DifferentWork: they do not.
    """
    check_same_work(bench, min(size, tiny))
    tasks = {
        _TORCH: bench.make(TORCH, size),
        _OURS: bench.make(OURS, size),
    }
    count = tasks[_TORCH].count
    if tasks[_OURS].count != count:
        raise DifferentWork(
            f"{bench.name}: torch.fx has {count} nodes, fx {tasks[_OURS].count}"
        )
    if bench.beside is not None:
        tasks[_BESIDE] = bench.beside.make(size)
    samples = measure(tasks, bench.unit, rounds)
    return _row(bench, size, count, samples)


def check_same_work(bench: Benchmark, size: int) -> None:
    """Raise unless both libraries' results are equal at a size."""
    theirs, ours = bench.seen(TORCH, size), bench.seen(OURS, size)
    if theirs != ours:
        raise DifferentWork(
            f"{bench.name}: results differ at {size} nodes:\n"
            + "\n".join(
                difflib.unified_diff(
                    _lines(theirs),
                    _lines(ours),
                    "torch.fx",
                    "fx",
                    "",
                    "",
                    1,
                    "",
                )
            )
        )


def _lines(seen: object) -> list[str]:
    """What was seen, line by line."""
    items = seen if isinstance(seen, list) else [seen]
    return [each for item in items for each in str(item).splitlines()]


def _row(bench: Benchmark, size: int, count: int, samples: Samples) -> Row:
    """The row of some samples."""
    theirs, ours = samples[_TORCH], samples[_OURS]
    label, beside = None, None
    if bench.beside is not None:
        label = bench.beside.label
        beside = statistics.median(samples[_BESIDE])
        if bench.beside.subtract:
            theirs = _less(theirs, samples[_BESIDE])
            ours = _less(ours, samples[_BESIDE])
    ratios = [t / o for t, o in zip(theirs, ours, strict=True)]
    scale = bench.unit.scale / count
    return Row(
        bench.name,
        size,
        count,
        bench.unit.name,
        statistics.median(theirs) * scale,
        statistics.median(ours) * scale,
        statistics.median(ratios),
        ratios,
        bench.goal(size),
        label,
        None if beside is None else beside * scale,
    )


def _less(samples: Iterable[float], floor: Iterable[float]) -> list[float]:
    """What is over the floor in each round; noise may leave nothing."""
    pairs = zip(samples, floor, strict=True)
    return [max(sample - low, 1e-12) for sample, low in pairs]


# -- text ------------------------------------------------------------------

_LAYOUT = "{:<30}{:>7}{:>11}{:>10}{:>8}{:>8}  {:<7}{}"


def header() -> str:
    """The head of the table."""
    columns = ("operation", "size", "torch", "ours", "ratio", "goal", "", "")
    title = _LAYOUT.format(*columns).rstrip()
    return (
        "µs a node, or as said; ratio is torch/ours, the median of rounds\n"
        f"in which both run in turn\n\n{title}\n{'-' * 86}"
    )


def line(row: Row) -> str:
    """A row of the table, and under it what ran beside both."""
    unit = row.unit if row.unit != "µs/node" else ""
    text = _LAYOUT.format(
        row.name,
        f"{row.size:,}",
        f"{row.torch:,.2f}",
        f"{row.ours:,.2f}",
        f"{row.ratio:.2f}",
        "" if row.goal is None else str(row.goal),
        row.verdict,
        unit,
    ).rstrip()
    if row.beside is None:
        return text
    return f"{text}\n  beside both: {row.label}, {row.beside:,.2f}"


def verdicts(rows: Sequence[Row]) -> str:
    """How many goals of a table are met, and which are not."""
    judged = [row for row in rows if row.verdict]
    missed = [f"{r.name} {r.size:,}" for r in judged if r.verdict != "met"]
    text = f"{len(judged) - len(missed)} of {len(judged)} goals are met"
    if missed:
        text += f"; not those of {', '.join(missed)}"
    return textwrap.fill(text, 78)


def captions(benchmarks: Iterable[Benchmark]) -> str:
    """What each operation of the table is."""
    return "\n".join(
        textwrap.fill(
            f"{bench.name}: {bench.caption}", 78, subsequent_indent="    "
        )
        for bench in benchmarks
    )


def as_json(rows: Iterable[Row]) -> str:
    """All rows with all rounds, and on what they were measured."""
    return json.dumps(
        {
            "python": platform.python_version(),
            "torch": str(torch.__version__),
            "machine": platform.machine(),
            "rows": [_fields(row) for row in rows],
        },
        indent=1,
        ensure_ascii=False,
    )


def _fields(row: Row) -> dict[str, object]:
    """A row as JSON has it."""
    fields: dict[str, object] = {**vars(row)}
    fields["goal"] = None if row.goal is None else str(row.goal)
    return {**fields, "reached": row.reached, "verdict": row.verdict}
