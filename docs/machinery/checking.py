"""What is wrong with a page: in its blocks, and in what its prose names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from markdown import Markdown

from docs.machinery.errors import DocsError
from docs.machinery.extension import KINDS, DocsExtension
from docs.machinery.literate import gaps, shown_lines
from docs.machinery.pages import text_of
from docs.machinery.reference import lent, names
from docs.machinery.source import ROOT, UnknownName, find, page_of, read
from stages.manifest import stages

USUAL = (
    "admonition",
    "attr_list",
    "tables",
    "toc",
    "pymdownx.details",
    "pymdownx.superfences",
)

CORE = [f"fx/{file}" for stage in stages().values() for file in stage.core]
"""The core files of the stages, whose pages show each line once."""

_named = re.compile(r"`(fx(?:\.\w+)+)`|\]\([^)\s]*#(fx(?:\.\w+)+)\)")


def problems(docs: Path, page: str) -> list[str]:
    """A sentence for each thing to mend on a page.

    Whether links between pages lead somewhere is left to the strict build.

    Args:
        docs: the folder of the pages.
        page: the page's path below it.
    """
    errors = sorted(block_errors(docs, page), key=lambda error: error.line)
    return [
        *map(str, errors),
        *unknown_names(docs, page),
        *(() if errors else uneven(page, shown_lines(docs, KINDS, page))),
    ]


def block_errors(docs: Path, page: str) -> list[DocsError]:
    """The errors of a page's blocks: each of them is drawn."""
    extension = DocsExtension(page)
    text = text_of(docs, page)
    Markdown(extensions=[*USUAL, extension]).convert(text)
    return extension.reading.page.errors


def unknown_names(docs: Path, page: str) -> Iterator[str]:
    """Names of fx in backticks, or linked to, that the code does not have."""
    text = text_of(docs, page)
    for number, line in enumerate(text.splitlines(), 1):
        for found in _named.finditer(line):
            name = found[1] or found[2]
            try:
                find(name)
            except UnknownName as error:
                if name not in _public():
                    yield f"docs/{page}:{number}: {name}: {error}"


@cache
def _public() -> set[str]:
    """The public names, under which the code may not define them."""
    return {name.anchor for name in names()} | lent()


def uneven(page: str, shown: Mapping[str, Counter[int]]) -> Iterator[str]:
    """The lines of a core file that its page does not show exactly once.

    Args:
        page: the page's path below docs/.
        shown: path of a file of fx -> line -> how often pages show it.
    """
    for name in CORE:
        if page_of(name) == page:
            for gap in gaps(read(ROOT / name), shown.get(name, Counter())):
                yield f"docs/{page}: {gap}"
