"""Help for authors.

python -m docs.machinery check files/node.md
python -m docs.machinery check                # all pages, a line for each
python -m docs.machinery words                # of each core, and of all pages
"""

from __future__ import annotations

import sys

from docs.machinery.checking import problems
from docs.machinery.extension import KINDS
from docs.machinery.pages import pages
from docs.machinery.source import ROOT
from docs.machinery.words import report

DOCS = ROOT / "docs"


def main(arguments: list[str]) -> int:
    """Do what the first argument says."""
    match arguments:
        case ["check"]:
            return check_all()
        case ["check", name]:
            return check(name.removeprefix("docs/"))
        case ["words"]:
            print("\n".join(report(DOCS, KINDS)))
        case _:
            print(__doc__)
            return 2
    return 0


def check(page: str) -> int:
    """Print all that is to mend on a page, and return the exit status."""
    found = problems(DOCS, page)
    for problem in found or [f"{page}: nothing to mend"]:
        print(problem)
    return int(bool(found))


def check_all() -> int:
    """Print a line for each page with something to mend, as `check` does."""
    lines = []
    for page in pages(DOCS):
        if found := problems(DOCS, page):
            more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            lines.append(found[0].splitlines()[0] + more)
    for line in lines or ["all pages: nothing to mend"]:
        print(line)
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
