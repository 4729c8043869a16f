"""The one error of the machinery: it names the page, the line and the cure.

An error concerns one block, so the rest of its page and all other pages are
drawn nevertheless.  The errors of a page are collected and reported together,
in one line; in a strict build each such line is a warning that fails it.
"""

from __future__ import annotations

from collections.abc import Sequence


class DocsError(Exception):
    """Something on a page that cannot be drawn.

    Attributes:
        page: the page's path below docs/.
        line: the line in the file, from 1.
    """

    def __init__(self, page: str, line: int, sentence: str) -> None:
        """Make the error.

        Args:
            page: the page's path below docs/.
            line: the line in the file, from 1.
            sentence: what is wrong there and what to write instead; further
                lines may give details.
        """
        super().__init__(f"docs/{page}:{line}: {sentence}")
        self.page = page
        self.line = line


def summary(errors: Sequence[DocsError]) -> str:
    """The errors of one page in one line: the first one, and what remains."""
    first = min(errors, key=lambda error: error.line)
    line, *details = str(first).splitlines()
    if more := len(errors) - 1:
        line += f" (and {more} more)"
    if more or details:
        line += f"; see: python -m docs.machinery check {first.page}"
    return line
