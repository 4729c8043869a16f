"""Runs the clients, and writes docs/clients.md.

    python -m tests.clients              those of one environment
    python -m tests.clients apart        those that have one each (apart.toml)
    python -m tests.clients NAME …       only these

The first writes the page anew, but for the table of those that are apart. Any
run of some of the latter writes that table, which has for each client what came
out when it was run last. A single client of the others leaves the page alone.
"""

from __future__ import annotations

import sys

from tests.clients.apart import APART
from tests.clients.page import PAGE, page, write_apart
from tests.clients.runner import CLIENTS, Result, run, unexplained


def main(names: list[str]) -> int:
    """Run clients and say what came out; 1 if something has no reason."""
    results: list[Result] = []
    problems: list[str] = []
    if names == ["apart"]:
        names = [*APART]
    for name in names or CLIENTS:
        for result in run(name):
            results.append(result)
            problems += unexplained(result)
            print(
                f"{result.client:36} cases {len(result.theirs):4}   "
                f"differ {len(result.differing()):3}   "
                f"fail under both {len(result.failing()):3}",
                flush=True,
            )
    if not names and not problems:
        PAGE.write_text(page(results), encoding="utf-8")
    if not problems and APART.keys() & {*(names or APART)}:
        write_apart()
    print(*problems, sep="\n")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
