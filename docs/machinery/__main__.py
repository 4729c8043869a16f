"""Help for authors.

python -m docs.machinery outline fx.node
python -m docs.machinery check files/node.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from markdown import Markdown

from docs.machinery.errors import DocsError
from docs.machinery.extension import BLOCKS, DocsExtension
from docs.machinery.literate import dotted, gaps, shown_lines
from docs.machinery.source import ROOT, find, read

DOCS = ROOT / "docs"
USUAL = (
    "admonition",
    "attr_list",
    "tables",
    "toc",
    "pymdownx.details",
    "pymdownx.superfences",
)


def main(arguments: list[str]) -> int:
    """Do what the first argument says."""
    match arguments:
        case ["outline", name]:
            print("\n".join(outline(name)))
        case ["check", name]:
            path = Path(name.removeprefix("docs/"))
            found = list(problems(path))
            print(*(found or [f"{path}: nothing to mend"]), sep="\n")
            return 1 if found else 0
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


def problems(page: Path) -> Iterator[str]:
    """What is wrong with a page; links are for the strict build to check."""
    text = (DOCS / page).read_text(encoding="utf-8")
    extension = DocsExtension(page=page.as_posix())
    try:
        Markdown(extensions=[*USUAL, extension]).convert(text)
    except DocsError as error:
        yield str(error)
        return
    kinds = {name: block.kind for name, block in BLOCKS.items()}
    shown = shown_lines(DOCS, kinds, page.as_posix())
    for path, lines in shown.items():
        yield from gaps(read(ROOT / path), lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
