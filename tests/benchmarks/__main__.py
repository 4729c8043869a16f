"""The command line: `python -m tests.benchmarks --help`."""

from __future__ import annotations

import argparse
import cProfile
import io
import pstats
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import torch

from tests.benchmarks import instructions, recorded, start
from tests.benchmarks.measure import Rounds, collector_off
from tests.benchmarks.operations import OURS, Benchmark, select
from tests.benchmarks.report import (
    CLOSE,
    DifferentWork,
    Row,
    as_json,
    captions,
    header,
    line,
    measured,
    verdicts,
)
from tests.benchmarks.tables import BENCHMARKS, by_table

__all__ = ["main"]


def main() -> int:
    """Measure and print the table; return the exit status.

    Returns:
        1 if the libraries did different work, or if `--check` and a goal is
        missed by more than 20 %, or if `--compare` and a row is more than
        10 % slower than recorded; else 0.
    """
    parser = _parser()
    options = parser.parse_args()
    try:
        chosen = select(options.only, BENCHMARKS)
    except ValueError as problem:
        parser.error(str(problem))
    if options.list:
        print(captions(chosen))
        return 0
    if options.instructions:
        chosen = _counted(chosen, options, parser)
    # One thread: that is what the clock sees, and what is compared.
    torch.set_num_threads(1)
    if options.record or options.compare:
        try:
            return _recorded(chosen) if options.record else _compared(chosen)
        except DifferentWork as problem:
            print(problem)
            return 1
    rows, different = _run(chosen, options)
    print(f"\n{captions(chosen)}")
    if options.json is not None:
        options.json.write_text(as_json(rows) + "\n", encoding="utf-8")
    if not options.only:
        print(f"\n{start.line(start.times())}")
    return int(different or (options.check and bool(_missed(rows))))


def _parser() -> argparse.ArgumentParser:
    """What the command line can say."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks",
        description="Measure fx beside torch.fx. Numbers are µs a node, "
        "medians of rounds in which both run in turn; ratio is torch/ours.",
    )
    add = parser.add_argument
    add(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="only operations whose names begin so: trace; repeatable",
    )
    add("--full", action="store_true", help="100,000 nodes as well")
    add("--size", type=int, metavar="N", help="this size instead of all")
    add("--rounds", type=int, metavar="N", help="at most so many (9)")
    add(
        "--instructions",
        action="store_true",
        help="thousands of instructions, which vary little, not µs (Linux)",
    )
    add("--json", type=Path, metavar="FILE", help="write all rounds to it")
    add(
        "--check",
        action="store_true",
        help="exit status 1 if a goal is missed by more than 20 %%",
    )
    add(
        "--record",
        action="store_true",
        help="only: add the ratio of every row to recorded.toml",
    )
    add(
        "--compare",
        action="store_true",
        help="only: exit status 1 if a row is over 10 %% slower than recorded",
    )
    add(
        "--profile",
        type=int,
        nargs="?",
        const=10,
        metavar="N",
        help="under each goal missed, the N functions that take most (10)",
    )
    add("--list", action="store_true", help="say what there is, and stop")
    return parser


def _counted(
    benchmarks: Sequence[Benchmark],
    options: argparse.Namespace,
    parser: argparse.ArgumentParser,
) -> list[Benchmark]:
    """The benchmarks in instructions, or the end if that cannot be done."""
    if options.record or options.compare:
        parser.error("--instructions is for the tables alone")
    try:
        clock = instructions.clock()
    except OSError as problem:
        parser.error(str(problem))
    return [instructions.counted(bench, clock) for bench in benchmarks]


def _run(
    benchmarks: Sequence[Benchmark], options: argparse.Namespace
) -> tuple[list[Row], bool]:
    """Measure and print row by row; whether some could not be compared."""
    rounds = instructions.ROUNDS if options.instructions else Rounds()
    if options.rounds:
        rounds = replace(rounds, most=options.rounds)
    rows: list[Row] = []
    different = False
    print(header())
    for title, table in by_table(benchmarks).items():
        print(f"\n{title}")
        begun = len(rows)
        different |= _run_table(table, options, rounds, rows)
        print(verdicts(rows[begun:]))
    return rows, different


def _run_table(
    benchmarks: Sequence[Benchmark],
    options: argparse.Namespace,
    rounds: Rounds,
    rows: list[Row],
) -> bool:
    """Add the rows of a table; whether some could not be compared."""
    different = False
    for bench in benchmarks:
        for size in _sizes(bench, options):
            try:
                row = measured(bench, size, rounds)
            except DifferentWork as problem:
                different = True
                print(problem)
                continue
            rows.append(row)
            print(line(row), flush=True)
            if options.profile and row.verdict in ("close", "MISSED"):
                print(_profile(bench, size, options.profile))
    return different


def _sizes(bench: Benchmark, options: argparse.Namespace) -> Sequence[int]:
    """The sizes to measure an operation at."""
    if options.size and not bench.unit.name.endswith("/call"):
        return (options.size,)
    return (*bench.sizes, *(bench.full if options.full else ()))


def _profile(bench: Benchmark, size: int, functions: int) -> str:
    """Where our time goes, by the time inside each function itself."""
    task = bench.make(OURS, size)
    task.run(task.setup())
    given = task.setup()
    profiler = cProfile.Profile()
    with collector_off():
        profiler.runcall(task.run, given)
    text = io.StringIO()
    stats = pstats.Stats(profiler, stream=text)
    stats.strip_dirs().sort_stats("tottime").print_stats(functions)
    lines = text.getvalue().splitlines()
    return "\n".join(f"    {each}" for each in lines if each.strip())


def _compared(benchmarks: Sequence[Benchmark]) -> int:
    """Measure each row beside its recorded ratio; return the exit status."""
    known = recorded.load(recorded.FILE.read_text(encoding="utf-8"))
    print(f"torch/ours, recorded: {known.since}\nnow: {recorded.releases()}\n")
    print(recorded.header())
    changes = []
    for change in recorded.compare(benchmarks, known.ratios):
        changes.append(change)
        print(recorded.line(change), flush=True)
    slower = _still_slower([one for one in changes if one.is_slower])
    slower = _slower_today(slower, known.commit)
    for change in slower:
        print(recorded.complaint(change))
    if not slower:
        print(f"\nno row is more than {recorded.LOST:.0%} slower")
    return int(bool(slower))


def _still_slower(changes: Sequence[recorded.Change]) -> list[recorded.Change]:
    """Those that are as slow when they are measured a second time."""
    if changes:
        print("\nonce more, with twice as many rounds:")
    again = []
    for change in changes:
        again.append(recorded.measured_again(change))
        print(recorded.line(again[-1]), flush=True)
    return [change for change in again if change.is_slower]


def _slower_today(
    changes: Sequence[recorded.Change], commit: str
) -> list[recorded.Change]:
    """Those that are slower than the recorded fx is on the machine of today."""
    if changes:
        print(f"\nin turn with fx of {commit or 'an unknown commit'}:")
    slower = []
    for change in changes:
        today = recorded.beside_the_recorded(change, commit)
        print(recorded.line(today or change), flush=True)
        if today is None or today.is_slower:
            slower.append(today or change)
    return slower


def _recorded(benchmarks: Sequence[Benchmark]) -> int:
    """Add a run to the file; return the exit status."""
    ratios: recorded.Ratios = {}
    commit = recorded.git("rev-parse", "--short", "HEAD").decode().strip()
    if recorded.FILE.is_file():
        known = recorded.load(recorded.FILE.read_text(encoding="utf-8"))
        ratios, commit = known.ratios, known.commit
    print(recorded.header())
    for change in recorded.compare(benchmarks, ratios):
        row = change.row
        ratios.setdefault((row.name, row.size), []).append(row.ratio)
        print(recorded.line(change), flush=True)
    text = recorded.as_toml(ratios, date.today(), commit)
    recorded.FILE.write_text(text, encoding="utf-8")
    return 0


def _missed(rows: Sequence[Row]) -> list[Row]:
    """The rows that are too far from their goals."""
    return [
        row for row in rows if row.reached is not None and row.reached < CLOSE
    ]


if __name__ == "__main__":
    sys.exit(main())
