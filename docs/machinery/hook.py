"""Gives MkDocs what is made for the site: pages, and what they load."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path, PurePath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docs.machinery import making, playing, terms
from docs.machinery.pages import DOCS, made
from docs.machinery.source import FILES

FILE_BOOST = 0.5
"""What a word on the page of a file counts in a search; 1 is the usual."""

SECTION = "The other files"
"""What the navigation calls them; a list of that name in mkdocs.yml."""


def on_config(config: MkDocsConfig) -> None:
    """Put the pages that it does not name into the navigation, by room."""
    named = set(_pages_in(config.nav))
    pages = made(Path(config.docs_dir))
    listed = by_room(page for page in pages if page not in named)
    for entry in config.nav or []:
        for within in entry.values() if isinstance(entry, dict) else ():
            for one in within if isinstance(within, list) else ():
                if isinstance(one, dict) and SECTION in one:
                    one[SECTION] = listed


def by_room(pages: Iterable[str]) -> list[dict[str, list[dict[str, str]]]]:
    """A list for each room, in order, with the name of each file."""

    def room(page: PurePath) -> str:
        parts = page.relative_to(FILES).parent.parts
        return "/".join(parts) or "fx"

    paths = sorted(map(PurePath, pages), key=lambda page: (room(page), page))
    return [
        {name: [{f"{one.stem}.py": str(one)} for one in inside]}
        for name, inside in groupby(paths, key=room)
    ]


def _pages_in(nav: object) -> Iterator[str]:
    """The pages that a part of the navigation names."""
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict | list):
        for one in nav.values() if isinstance(nav, dict) else nav:
            yield from _pages_in(one)


def on_pre_build(config: MkDocsConfig) -> None:
    """Make what the pages load, before MkDocs looks for files to copy."""
    if Path(config.docs_dir) == DOCS:
        making.make()
        playing.make()


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the pages to those of docs/."""
    for page, text in made(Path(config.docs_dir)).items():
        files.append(File.generated(config, page, content=text))


def on_page_markdown(
    markdown: str, page: Page, config: MkDocsConfig, files: Files
) -> None:
    """Let a search find the pages of files after those that explain.

    A page with words of its own that readers search for stays as it is.
    """
    if page.file.src_uri.startswith(FILES) and "tags" not in page.meta:
        page.meta.setdefault("search", {}).setdefault("boost", FILE_BOOST)


def on_page_content(html: str, **_: object) -> str:
    """Say at each link to the glossary what the term means."""
    return terms.explained(html)
