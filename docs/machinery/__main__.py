"""Help for authors.

python -m docs.machinery outline fx.node
python -m docs.machinery check files/node.md
python -m docs.machinery check                # all pages, a line for each
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from docs.machinery.checking import pages, problems
from docs.machinery.literate import dotted
from docs.machinery.source import ROOT, find

DOCS = ROOT / "docs"


def main(arguments: list[str]) -> int:
    """Do what the first argument says."""
    match arguments:
        case ["outline", name]:
            print("\n".join(outline(name)))
        case ["check", *names]:
            chosen = [name.removeprefix("docs/") for name in names]
            return check(chosen or pages(DOCS))
        case _:
            print(__doc__)
            return 2
    return 0


def outline(name: str) -> Iterator[str]:
    """A page for a file of fx, to be grouped and written."""
    module = find(name).module
    yield f"# {Path(module.path).name}\n\n…\n\n## …\n"
    for unit in module.units:
        inside = [one for one in unit.members if one.first > unit.header_last]
        yield f"/// source | {dotted(module, unit)}"
        if inside:
            yield "    header: true"
        yield "\n…\n///\n"
        for member in inside:
            yield f"/// source | {dotted(module, member)}\n\n…\n///\n"


def check(names: Sequence[str]) -> int:
    """Print what is to mend on pages, and return the exit status.

    Args:
        names: their paths below docs/; if one alone, all of it is printed,
            else a line for each page.
    """
    wrong = 0
    for name in names:
        found = problems(DOCS, name)
        wrong += bool(found)
        if len(names) > 1 and found:
            more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            found = [found[0].splitlines()[0] + more]
        for problem in found:
            print(problem)
    if not wrong:
        what = names[0] if len(names) == 1 else f"{len(names)} pages"
        print(f"{what}: nothing to mend")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
