"""Writes the tables of docs/reliability.md, each made by a run."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from math import isfinite
from pathlib import Path

from tests.reliability.run import Found

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"


def write_search(results: Sequence[Found], seed: int, seconds: float) -> None:
    """Write the table of a search, in which each part had so many seconds."""
    today = datetime.now(tz=UTC).date().isoformat()
    versions = f"Python {platform.python_version()}, torch {version('torch')}"
    lines = [
        "| part | what is compared | cases | wrong here | wrong in torch.fx |",
        "|---|---|--:|--:|--:|",
    ]
    for found in results:
        theirs = "-" if found.theirs is None else f"{found.theirs:,}"
        cells = (
            f"`{found.name}`",
            found.compares.replace("|", "\\|"),
            f"{found.cases:,}",
            f"{len(found.wrong):,}",
            theirs,
        )
        lines.append(f"| {' | '.join(cells)} |")
    limit = ""
    if isfinite(seconds):
        limit = f"; each part was stopped after {seconds:.0f} seconds"
    lines += ["", f"Run on {today}: {versions}, seed {seed}{limit}."]
    write_table("search", lines)


def write_table(name: str, lines: Sequence[str]) -> None:
    """Put lines between the page's two comments of this name."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    head, _, rest = PAGE.read_text().partition(begin)
    tail = rest.partition(end)[2]
    middle = "\n".join(lines)
    PAGE.write_text(f"{head}{begin}\n\n{middle}\n\n{end}{tail}")
