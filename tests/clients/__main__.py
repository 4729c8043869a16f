"""Runs the clients, and writes docs/clients.md.

    python -m tests.clients [NAME …]

With names, only these are run, and the page stays as it is.
"""

from __future__ import annotations

import sys

from tests.clients.page import PAGE, page
from tests.clients.runner import CLIENTS, Result, run, unexplained


def main(names: list[str]) -> int:
    """Run clients and say what came out; 1 if something has no reason."""
    results: list[Result] = []
    problems: list[str] = []
    for name in names or CLIENTS:
        result = run(name)
        results.append(result)
        problems += unexplained(result)
        differing = result.differing()
        print(
            f"{name:20} cases {len(result.theirs):4}   "
            f"differ {len(differing):3}   "
            f"fail under both {len(result.failing()):3}",
            flush=True,
        )
    if not names and not problems:
        PAGE.write_text(page(results), encoding="utf-8")
    print(*problems, sep="\n")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
