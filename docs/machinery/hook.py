"""Gives MkDocs the pages that are made from files of fx, and their places."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path, PurePath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from docs.machinery.pages import made
from docs.machinery.source import FILES

SECTION = "The other files"
"""What the navigation calls them; a list of that name in mkdocs.yml."""


def on_config(config: MkDocsConfig) -> None:
    """Put the pages into the navigation, by room."""
    pages = made(Path(config.docs_dir))
    rooms = groupby(pages, key=lambda page: str(PurePath(page).parent))
    listed = [
        {room.removeprefix(FILES.rstrip("/")).strip("/") or "fx": list(inside)}
        for room, inside in rooms
    ]
    for entry in config.nav or []:
        for within in entry.values():
            for one in within if isinstance(within, list) else ():
                if isinstance(one, dict) and SECTION in one:
                    one[SECTION] = listed


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the pages to those of docs/."""
    for page, text in made(Path(config.docs_dir)).items():
        files.append(File.generated(config, page, content=text))
