"""Gives MkDocs what is made for the site: pages, and what they load."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path, PurePath
from typing import TypeAlias

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docs.machinery import making, playing, terms
from docs.machinery.pages import DOCS, PROGRAMS, made, pages
from docs.machinery.source import FILES, page_of
from docs.machinery.words import core_pages, file_of
from stages.manifest import stages

FILE_BOOST = 0.3
"""What a word on the page of a file counts in a search; 1 is the usual."""

PASSES = "Passes"
"""The list, in another tab, of the files that begin with a program."""

PASS_PAGES = [page_of(f"fx/{name}") for name in PROGRAMS]

SECTION = "Source"
"""The tab of all files of fx; a list of that name in mkdocs.yml."""

MORE = "More files of this stage"

PARTS = {
    PASSES: ("passes", "experimental", "pipeline"),
    "Beyond torch.fx": ("extra", "show", "as_torch"),
}
"""Parts of that tab behind the stages; what is in none is Internals."""

Nav: TypeAlias = "list[dict[str, Nav] | str]"


def on_config(config: MkDocsConfig) -> None:
    """Put the pages of all files into the navigation."""
    if Path(config.docs_dir) == DOCS:
        for entry in config.nav or []:
            if isinstance(entry, dict) and SECTION in entry:
                entry[SECTION] = source_tab()
            elif isinstance(entry, dict):
                for part in next(iter(entry.values())):
                    if isinstance(part, dict) and PASSES in part:
                        part[PASSES] = [*PASS_PAGES]


def source_tab() -> Nav:
    """The pages of all files: by stage, the core first, then by folder."""
    known = set(pages(DOCS))
    found = [
        page
        for page in sorted(known.difference(PASS_PAGES))
        if page.startswith(FILES)
    ]
    tab: Nav = []
    for number, stage in stages().items():
        core = core_pages(number)[1:]
        more = [page for page in found if _is_of(page, number)]
        rest: Nav = [page for page in more if page not in core]
        own: Nav = [page for page in core if page in known]
        if rest:
            own.append({MORE: rest})
        tab.append({f"{number:02d} {stage.title}": own})
        found = [page for page in found if page not in {*core, *more}]
    for name, rooms in PARTS.items():
        inside = [page for page in found if _room(page)[0] in rooms]
        tab.append({name: by_room(inside)})
        found = [page for page in found if page not in inside]
    tab.append({"Internals": by_room(found)})
    return tab


def by_room(pages: Iterable[str]) -> Nav:
    """A list for each folder, in order, with the pages of its files."""

    def folder(page: str) -> str:
        return "/".join(("fx", *_room(page)[:-1]))

    paths = sorted(pages, key=lambda page: (folder(page), page))
    return [{name: [*inside]} for name, inside in groupby(paths, key=folder)]


def _room(page: str) -> tuple[str, ...]:
    """The folders that a page's file is in, and its own name."""
    return PurePath(page).relative_to(FILES).with_suffix("").parts


def _is_of(page: str, stage: int) -> bool:
    """Whether a page's file belongs to a stage."""
    file = file_of(page)
    return file is not None and file.stage == stage


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
