"""Reads the rows of docs/differences.md, and the programs that show each.

python -m tests.checks.differences --write    updates the table of effects
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.library import effect_rows
from tests.parity import programs as _programs  # registers them
from tests.parity.harness import PROGRAMS

assert _programs is not None

PAGE = Path(__file__).parents[2] / "docs" / "differences.md"
BEGIN, END = "<!-- effects: begin -->", "<!-- effects: end -->"


def rows_of_page(text: str) -> list[str]:
    """The ids of the rows, in the order of the page."""
    return re.findall(r"^\| `([a-z0-9-]+)` \|", text, flags=re.MULTILINE)


def rows_of_programs() -> set[str]:
    """The ids that parity programs name."""
    return {p.differs for p in PROGRAMS.values() if p.differs is not None}


def effect_table() -> str:
    """The table of effects, as Markdown."""
    lines = ["| construct | class | reason |", "|---|---|---|"]
    rows = effect_rows.ROWS
    for row in rows:
        cells = (f"`{row.call}`", row.kind, row.reason)
        lines.append("| " + " | ".join(c.replace("|", "\\|") for c in cells))
        lines[-1] += " |"
    return "\n".join(lines)


def with_table(text: str) -> str:
    """The page's text with its table of effects replaced by today's."""
    head, _, rest = text.partition(BEGIN)
    tail = rest.partition(END)[2]
    return f"{head}{BEGIN}\n\n{effect_table()}\n\n{END}{tail}"


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        raise SystemExit(__doc__)
    PAGE.write_text(with_table(PAGE.read_text()))
