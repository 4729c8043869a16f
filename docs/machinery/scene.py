"""What a block is drawn with: its directive, where it goes, and the pens."""

from __future__ import annotations

import xml.etree.ElementTree as etree
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import TypeAlias

from markdown import Markdown
from markdown.util import AtomicString
from pymdownx.highlight import Highlight

from docs.machinery.directives import Directive, Kind
from docs.machinery.errors import DocsError


@dataclass(frozen=True)
class Scene:
    """One block on its way to the page.

    Attributes:
        md: the converter of this page.
        parent: the element that the block goes into.
        directive: what the author wrote.
    """

    md: Markdown
    parent: etree.Element
    directive: Directive

    def error(self, sentence: object) -> DocsError:
        """An error at the block's first line."""
        return self.directive.error(sentence)

    def raw(self, parent: etree.Element, html: str) -> None:
        """Put finished HTML behind what is in `parent`."""
        element = etree.SubElement(parent, "div")
        element.text = AtomicString(self.md.htmlStash.store(html))

    def output(self, parent: etree.Element, text: str) -> None:
        """Put what a program printed into `parent`.

        No `pre`: where that is folded, the theme does not see that it
        scrolls, and one cannot reach it with the keyboard.
        """
        self.raw(
            parent,
            '<div class="fx-scroll fx-output" tabindex="0" role="group" '
            'aria-label="Output">'
            f'<div class="fx-text">{html(text)}</div></div>',
        )

    def code(
        self,
        parent: etree.Element,
        text: str,
        *,
        language: str = "python",
        first: int = 0,
        marked: Sequence[int] = (),
    ) -> None:
        """Put a highlighted listing into `parent`.

        Args:
            parent: where it goes.
            text: the listing.
            language: what Pygments calls its language.
            first: the number of the first line; 0 for no numbers.
            marked: the lines to mark, counted from 1.
        """
        self.raw(parent, listing(text, language, first, tuple(marked)))


@cache
def listing(
    text: str, language: str, first: int = 0, marked: tuple[int, ...] = ()
) -> str:
    """A listing as HTML, coloured by the theme's style sheet."""
    pen = Highlight(
        Markdown(),
        linenums=bool(first) or None,
        linenums_style="pymdownx-inline",
    )
    return pen.highlight(
        text, language, linestart=first or -1, hl_lines=list(marked)
    )


def element(
    parent: etree.Element,
    tag: str,
    text: str = "",
    css: str = "",
    **attributes: str,
) -> etree.Element:
    """A new element at the end of `parent`; its text is taken as it is."""
    made = etree.SubElement(parent, tag, attributes)
    if css:
        made.set("class", css)
    if text:
        made.text = AtomicString(text)
    return made


def after(made: etree.Element, text: str) -> None:
    """Put text behind an element, as it is."""
    made.tail = AtomicString(text)


def prose(parent: etree.Element, tag: str, text: str) -> etree.Element:
    """A new element whose text may hold inline Markdown."""
    made = etree.SubElement(parent, tag)
    made.text = text
    return made


def html(text: str) -> str:
    """A text as HTML."""
    return escape(text, quote=True)


Draw: TypeAlias = Callable[[Scene], etree.Element]
"""Draws a block; gives the element that the block's prose goes into."""


@dataclass(frozen=True)
class Block:
    """A sort of block: how it is written and how it is drawn."""

    kind: Kind
    draw: Draw
