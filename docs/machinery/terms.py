"""What a term of the glossary means, shown where the pointer is over a link."""

from __future__ import annotations

import re
from functools import cache
from html import escape
from typing import Final

from markdown.extensions.toc import slugify

from docs.machinery.pages import DOCS

_LINK: Final = re.compile(r'<a href="((?:\.\./)*glossary/#([\w-]+))">')
_MARKS: Final = re.compile(r"\[([^\]]+)\]\([^)]+\)|`|\*\*")


@cache
def meanings() -> dict[str, str]:
    """What each term means, as plain text, by the anchor of its heading."""
    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    found = re.findall(r"^### (.+)\n\n((?:.+\n)+)", text, re.MULTILINE)
    return {
        slugify(term, "-"): _MARKS.sub(r"\1", " ".join(lines.split()))
        for term, lines in found
    }


def explained(html: str) -> str:
    """A page whose links to the glossary say what the term means."""

    def link(found: re.Match[str]) -> str:
        title = escape(meanings()[found[2]])
        return f'<a href="{found[1]}" title="{title}">'

    return _LINK.sub(link, html)
