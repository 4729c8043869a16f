"""The Markdown extension: reads a page's blocks and has them drawn.

What cannot be drawn becomes a box with its error, and the page is drawn to
its end.  Then MkDocs is given the errors of the page as one warning, which
fails a strict build once all pages are read.

markdown_extensions:
  - docs.machinery.extension
"""

from __future__ import annotations

import logging
import xml.etree.ElementTree as etree
from pathlib import Path

from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor
from markdown.treeprocessors import Treeprocessor
from mkdocs.structure.files import File
from pymdownx.blocks import BlocksExtension, BlocksProcessor
from pymdownx.blocks.block import Block as MarkdownBlock

from docs.machinery import (
    chart,
    choosing,
    course,
    drawing,
    literate,
    making,
    playing,
    ranking,
    reference_pages,
    results,
    running,
    stepper,
    tables,
    whole_file,
)
from docs.machinery.claimed import said_of
from docs.machinery.directives import Page, read_page
from docs.machinery.errors import DocsError, summary
from docs.machinery.scene import Block, Scene, element
from docs.machinery.source import ROOT, UnknownName
from docs.machinery.words import filled, label

_log = logging.getLogger("mkdocs.fx")  # MkDocs counts the warnings below it

BLOCKS: dict[str, Block] = {
    **literate.BLOCKS,
    **tables.BLOCKS,
    **ranking.BLOCKS,
    **course.BLOCKS,
    **running.BLOCKS,
    **stepper.BLOCKS,
    **drawing.BLOCKS,
    **making.BLOCKS,
    **playing.BLOCKS,
    **chart.BLOCKS,
    **choosing.BLOCKS,
    **reference_pages.BLOCKS,
    **results.BLOCKS,
    **whole_file.BLOCKS,
}
"""Every block that a page may have, by name."""

KINDS = {name: block.kind for name, block in BLOCKS.items()}
"""How each of them is written."""


class _Reading(Preprocessor):
    """Reads the blocks before anything else looks at the page."""

    page = Page("")
    name = ""

    def run(self, lines: list[str]) -> list[str]:
        """The page with numbers in place of its blocks."""
        name, offset = _where(self.md, lines)
        name = self.name or name
        wrong = []
        for at, line in enumerate(lines):
            try:
                lines[at] = filled(line, name, ROOT / "docs", KINDS)
            except UnknownName as error:
                wrong.append(DocsError(name, offset + at + 1, str(error)))
        self.page = read_page(name, lines, KINDS, offset)
        self.page.errors += wrong
        return self.page.lines


def _where(md: Markdown | None, lines: list[str]) -> tuple[str, int]:
    """The page's path, and how many lines its front matter takes."""
    if md is None or "relpath" not in md.treeprocessors:
        return "page.md", 0
    file = getattr(md.treeprocessors["relpath"], "file", None)
    if not isinstance(file, File):
        return "page.md", 0
    if file.abs_src_path is None:
        return file.src_uri, 0
    whole = Path(file.abs_src_path).read_text(encoding="utf-8")
    shown = "\n".join(lines).rstrip()
    return file.src_uri, whole.rstrip().count("\n") - shown.count("\n")


class _Reporting(Treeprocessor):
    """Reports the errors of a page when all its blocks are drawn."""

    def __init__(self, md: Markdown, reading: _Reading) -> None:
        super().__init__(md)
        self.reading = reading

    def run(self, root: etree.Element) -> None:
        """Leave the page as it is."""
        if errors := self.reading.page.errors:
            _log.warning("%s", summary(errors))


class _Labelling(Treeprocessor):
    """Says below the title where the page belongs, and how long it is."""

    def __init__(self, md: Markdown, reading: _Reading) -> None:
        super().__init__(md)
        self.reading = reading

    def run(self, root: etree.Element) -> None:
        """Add a line behind the first heading."""
        text = label(self.reading.page, ROOT / "docs", KINDS)
        title = root.find("h1")
        if title is not None and text:
            line = etree.Element("p", {"class": "fx-page"})
            said = said_of(self.reading.page.name)
            line.text, line.tail = " · ".join(filter(None, (text, said))), "\n"
            root.insert(list(root).index(title) + 1, line)


class _Drawn(MarkdownBlock):
    """Any of our blocks: its argument is its number on the page."""

    NAME = "fx"
    ARGUMENT = True

    def on_create(self, parent: etree.Element) -> etree.Element:
        """Draw the block, all but its prose."""
        page = self.config["reading"].page
        directive = page.directives[int(self.argument)]
        if not directive.understood:
            return _box(parent, page, "This block is not understood.")
        drawn = len(parent)
        try:
            return BLOCKS[directive.name].draw(
                Scene(self.md, parent, directive)
            )
        except (DocsError, UnknownName, running.Failed) as raised:
            known = isinstance(raised, DocsError)
            error = raised if known else directive.error(raised)
            page.errors.append(error)
            del parent[drawn:]
            return _box(parent, page, str(error))


def _box(parent: etree.Element, page: Page, error: str) -> etree.Element:
    """Draw an error in place of a block; the prose goes into it.

    What other pages link to is here too, so that they have no errors.
    """
    box = element(parent, "div", css="admonition failure")
    title, _, details = error.partition("\n")
    element(box, "p", title, css="admonition-title")
    if details:
        element(element(box, "pre"), "code", details)
    for anchor in literate.not_drawn(page):
        element(box, "span", id=anchor)
    return box


class DocsExtension(BlocksExtension):
    """Our blocks, for one page."""

    def __init__(self, page: str = "") -> None:
        """Make the extension.

        Args:
            page: the page's path below docs/, whose errors the caller will
                take from `reading.page`; MkDocs does not give it.
        """
        self.page = page
        self.reading = _Reading()
        super().__init__()

    def extendMarkdownBlocks(
        self, md: Markdown, block_mgr: BlocksProcessor
    ) -> None:
        """Add the reader and the one block that stands for all."""
        self.reading = _Reading(md)
        self.reading.name = self.page
        # Behind the normaliser of line ends (30), before the fences (25).
        md.preprocessors.register(self.reading, "fx-blocks", 27)
        block_mgr.register(_Drawn, {"reading": self.reading})
        if not self.page:
            report = _Reporting(md, self.reading)
            md.treeprocessors.register(report, "fx-report", -10)
        labelling = _Labelling(md, self.reading)
        md.treeprocessors.register(labelling, "fx-label", -5)
        rank = ranking.Ranking(md, lambda: self.reading.page)
        # Before inline (20), while the ids are text.
        md.treeprocessors.register(rank, "fx-rank", 25)


def makeExtension() -> Extension:
    """What Markdown calls to get the extension."""
    return DocsExtension()
