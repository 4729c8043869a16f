"""The one error of the machinery: it names the page and the line."""

from __future__ import annotations

from mkdocs.exceptions import BuildError


class DocsError(BuildError):
    """Something on a page that cannot be drawn; it ends the build."""


def at(page: str, line: int, sentence: str) -> DocsError:
    """An error at a line of a page.

    Args:
        page: the page's path below docs/.
        line: the line in the file, from 1.
        sentence: what is wrong there, and what to write instead.
    """
    return DocsError(f"docs/{page}:{line}: {sentence}")
