"""Runs the clients, and writes what they did below tests/clients/results.

    python -m tests.clients              those of one environment, not the
                                         slowest (SLOWEST in runner.py)
    python -m tests.clients apart        those that have one each (apart.toml)
    python -m tests.clients NAME …       only these

A table has for each client what came out when it was run last; docs/clients.md
is drawn from them.
"""

from __future__ import annotations

import sys

from tests.clients.apart import APART
from tests.clients.results import note
from tests.clients.runner import CLIENTS, SLOWEST, Result, run, unexplained


def main(names: list[str]) -> int:
    """Run clients and say what came out; 1 if something has no reason."""
    results: list[Result] = []
    problems: list[str] = []
    if names == ["apart"]:
        names = [*APART]
    for name in names or [each for each in CLIENTS if each not in SLOWEST]:
        for result in run(name):
            results.append(result)
            problems += unexplained(result)
            print(
                f"{result.client:36} cases {len(result.theirs):4}   "
                f"differ {len(result.differing()):3}   "
                f"fail under both {len(result.failing()):3}",
                flush=True,
            )
    if not problems:
        note(results)
    print(*problems, sep="\n")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
