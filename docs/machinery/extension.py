"""The Markdown extension: reads a page's blocks and has them drawn.

markdown_extensions:
  - docs.machinery.extension
"""

from __future__ import annotations

import xml.etree.ElementTree as etree
from pathlib import Path

from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor
from mkdocs.structure.files import File
from pymdownx.blocks import BlocksExtension, BlocksProcessor
from pymdownx.blocks.block import Block as MarkdownBlock

from docs.machinery import (
    course,
    drawing,
    literate,
    reference,
    running,
    stepper,
    tables,
)
from docs.machinery.directives import Page, read_page
from docs.machinery.scene import Block, Scene

BLOCKS: dict[str, Block] = {
    **literate.BLOCKS,
    **tables.BLOCKS,
    **course.BLOCKS,
    **running.BLOCKS,
    **stepper.BLOCKS,
    **drawing.BLOCKS,
    **reference.BLOCKS,
}
"""Every block that a page may have, by name."""


class _Reading(Preprocessor):
    """Reads the blocks before anything else looks at the page."""

    page = Page("")
    name = ""

    def run(self, lines: list[str]) -> list[str]:
        """The page with numbers in place of its blocks."""
        name, offset = _where(self.md, lines)
        name = self.name or name
        kinds = {name: block.kind for name, block in BLOCKS.items()}
        self.page = read_page(name, lines, kinds, offset)
        return self.page.lines


def _where(md: Markdown | None, lines: list[str]) -> tuple[str, int]:
    """The page's path, and how many lines its front matter takes."""
    if md is None or "relpath" not in md.treeprocessors:
        return "page.md", 0
    file = getattr(md.treeprocessors["relpath"], "file", None)
    if not isinstance(file, File) or file.abs_src_path is None:
        return "page.md", 0
    whole = Path(file.abs_src_path).read_text(encoding="utf-8")
    shown = "\n".join(lines).rstrip()
    return file.src_uri, whole.rstrip().count("\n") - shown.count("\n")


class _Drawn(MarkdownBlock):
    """Any of our blocks: its argument is its number on the page."""

    NAME = "fx"
    ARGUMENT = True

    def on_create(self, parent: etree.Element) -> etree.Element:
        """Draw the block, all but its prose."""
        reading: _Reading = self.config["reading"]
        directive = reading.page.directives[int(self.argument)]
        scene = Scene(self.md, parent, directive)
        return BLOCKS[directive.name].draw(scene)


class DocsExtension(BlocksExtension):
    """Our blocks, for one page."""

    def __init__(self, page: str = "") -> None:
        """Make the extension.

        Args:
            page: the page's path below docs/; MkDocs says it itself.
        """
        self.page = page
        super().__init__()

    def extendMarkdownBlocks(
        self, md: Markdown, block_mgr: BlocksProcessor
    ) -> None:
        """Add the reader and the one block that stands for all."""
        reading = _Reading(md)
        reading.name = self.page
        # Behind the normaliser of line ends (30), before the fences (25).
        md.preprocessors.register(reading, "fx-blocks", 27)
        block_mgr.register(_Drawn, {"reading": reading})


def makeExtension() -> Extension:
    """What Markdown calls to get the extension."""
    return DocsExtension()
