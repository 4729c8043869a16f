"""The command line: `python -m tests.reliability --help`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tests.reliability import page
from tests.reliability.run import (
    LIMIT,
    Found,
    about,
    in_processes,
    names,
    search,
    search_planted,
)

SHOWN = 5
"""Wrong cases of a part that are printed; a fault shows in many."""


def main(argv: Sequence[str] | None = None) -> int:
    """Search, or plant faults; print what was found.

    Args:
        argv: the arguments; by default those of the process.

    Returns:
        1 if anything of fx is wrong, a part failed, or a planted fault was
        not found; else 0.
    """
    options = _parser().parse_args(argv)
    console = Console(highlight=False)
    chosen = options.part or names()
    if options.plants:
        return _plants(console, chosen, options)
    jobs = {
        name: partial(
            search,
            name,
            options.seed,
            long=options.long,
            seconds=options.seconds,
        )
        for name in chosen
    }
    unlimited = 24 * 3600.0
    rows = dict(in_processes(jobs, options.jobs, unlimited))
    results = [rows[name] for name in chosen]
    console.print(_table(results))
    for found in results:
        for line in _explained(found):
            console.print(escape(line), soft_wrap=True)
    bad = any(found.wrong or found.broken for found in results)
    if options.write and not bad:
        page.write_search(results, options.seed, options.seconds)
    return int(bad)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.reliability",
        description="Search for silent wrong results, beside torch.fx.",
    )
    add = parser.add_argument
    add(
        "part",
        nargs="*",
        choices=[[], *names()],
        help="which to run (default: all)",
    )
    add("--long", action="store_true", help="as many cases as `make fuzz`")
    add("--seed", type=int, default=0, help="draw other cases (default: 0)")
    add(
        "--seconds",
        type=float,
        default=float("inf"),
        help="stop each part after so long",
    )
    add(
        "--plants",
        action="store_true",
        help="put faults into copies of fx/ and have the parts find them: the "
        "first of each part, with --long all",
    )
    add(
        "--write",
        action="store_true",
        help="write the table of docs/reliability.md, if nothing is wrong",
    )
    add(
        "--jobs",
        type=int,
        default=os.cpu_count() or 1,
        help="how many parts run at a time (default: one for each core)",
    )
    return parser


def _table(results: Sequence[Found]) -> Table:
    """A row for each part."""
    table = Table(box=box.SIMPLE)
    table.add_column("part")
    for head in ("cases", "wrong here", "wrong in torch.fx", "seconds"):
        table.add_column(head, justify="right")
    for found in results:
        theirs = "-" if found.theirs is None else str(found.theirs)
        table.add_row(
            found.name,
            f"{found.cases:,}",
            "broken" if found.broken else f"{len(found.wrong)}",
            theirs,
            f"{found.seconds:.1f}",
        )
    return table


def _explained(found: Found) -> Iterator[str]:
    """The wrong cases of a part, as much as is needed to try them again."""
    if found.broken:
        yield f"{found.name}: {found.broken}"
    for wrong in found.wrong[:SHOWN]:
        yield f"{found.name}: {wrong.case}\n    {wrong.ours}\n"
    if len(found.wrong) > SHOWN:
        yield f"{found.name}: and {len(found.wrong) - SHOWN} more\n"


# -- planted faults --------------------------------------------------------


def _plants(
    console: Console, chosen: Sequence[str], options: argparse.Namespace
) -> int:
    """Plant faults, and say which of them were found."""
    jobs: dict[str, Callable[[], Found]] = {}
    known: Mapping[str, Found] = dict(
        in_processes({name: partial(about, name) for name in chosen}, 1, LIMIT)
    )
    missed = [name for name in chosen if known[name].broken]
    for name in chosen:
        plants = known[name].plants
        for number, plant in enumerate(plants if options.long else plants[:1]):
            jobs[f"{name} {number}: {plant.why}"] = partial(
                search_planted, name, plant, options.seed, long=options.long
            )
    for key, found in in_processes(jobs, options.jobs, LIMIT):
        how = f"case {found.cases}" if found.wrong else found.broken
        is_found = bool(found.wrong) or found.crashed
        verdict = "found" if is_found else "NOT FOUND"
        console.print(escape(f"{verdict:9}  {key} ({how})"), soft_wrap=True)
        if not is_found:
            missed.append(key)
    console.print(f"{len(jobs)} faults planted, {len(missed)} not found")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
