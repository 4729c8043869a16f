"""How long the pages are: words of prose, and minutes to read these.

The core of a page is what comes above its heading `## For reference`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from docs.machinery.directives import Directive, Kind, Page, read_page
from docs.machinery.literate import dotted
from docs.machinery.reference import definitions
from docs.machinery.source import FILES, find, page_of
from stages.manifest import REFERENCE as LIBRARY
from stages.manifest import SourceFile, source_file, stages

WORDS: Final = 220
"""Words that one reads in a minute."""

LOOKED_UP = tuple(
    "index.md api/ claims.md differences.md glossary.md speed.md".split()
)
"""Pages for looking something up."""

PROGRAMS = frozenset(("run", "excerpt", "predict", "play"))
"""Blocks with code, whose reading is not counted."""

REFERENCE = "## For reference"
"""The heading below which a page is for looking something up."""

_frame = re.compile(r"(/{3,})(?: fx \| (\d+))?$")


def words(page: Page, *, core: bool = False) -> int:
    """The words of a page's prose.

    Args:
        page: the page.
        core: count its core alone.
    """
    fenced, found = False, 0
    inside: list[Directive] = []
    drawn = {"claims", "torch", "write"} if core else {"claims"}
    for line in page.lines:
        if core and line == REFERENCE:
            break
        if frame := _frame.match(line):
            if frame[2]:
                inside.append(page.directives[int(frame[2])])
            else:
                inside.pop()
        elif line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif any(block.name in drawn for block in inside):
            continue
        elif not fenced and not line.startswith(("#", "|", "    ")):
            found += len(line.split())
    return found


def minutes(words: int) -> str:
    """How long it takes to read some words."""
    count = max(1, round(words / WORDS))
    return f"{count} minute{'s' * (count > 1)}"


def time(page: Page) -> str:
    """How long it takes to read a page; its programs come on top."""
    has = any(block.name in PROGRAMS for block in page.directives)
    return minutes(words(page, core=True)) + " without the programs" * has


def label(page: Page, docs: Path, kinds: dict[str, Kind]) -> str:
    """The line below a page's title; "" for pages that are looked up.

    Args:
        page: the page.
        docs: the folder of all pages.
        kinds: the blocks that there are.
    """
    if page.name.startswith(LOOKED_UP):
        return ""
    own = words(page, core=True)
    if page.name.startswith("stages/"):
        core = core_pages(int(Path(page.name).stem))
        whole = own + sum(
            words(read(docs, name, kinds), core=True) for name in core[1:]
        )
        return f"{time(page)} · with the core files {minutes(whole)}"
    path = LIBRARY / page.name.removeprefix(FILES).replace(".md", ".py")
    if not (page.name.startswith(FILES) and path.is_file()):
        return time(page)
    where = f"fx/{path.relative_to(LIBRARY)}"
    if file := file_of(page.name):
        where += f" · Stage {file.stage:02d}"
        if page.name in core_pages(file.stage):
            where += f" · core, {minutes(own)} beside the code"
    return where


def filled(text: str, page: str, docs: Path, kinds: dict[str, Kind]) -> str:
    """A text with what is only known when the site is built.

    `{minutes PAGE}` is how long it takes to read that page, `{repository}` the
    address to clone: that of the edit links; a build without one leaves the
    line out. `{at NAME}` is the file and line of a definition of fx, with a
    link.

    Args:
        text: a line of a page.
        page: that page.
        docs: the folder of all pages.
        kinds: the blocks that there are.

    Raises:
        UnknownName: fx defines no such name.
    """
    address = os.environ.get("REPO_URL") or ""
    if "{repository}" in text and not address:
        return ""
    text = text.replace("{repository}", address)
    for found in re.finditer(r"\{minutes (\S+)\}", text):
        text = text.replace(found[0], time(read(docs, found[1], kinds)))
    up = "../" * page.count("/")
    return re.sub(r"\{at (\S+)\}", lambda found: up_to(found[1], up), text)


def up_to(name: str, up: str) -> str:
    """A link to a definition; its text is the file and the line."""
    place = find(name)
    path = place.module.path
    target = f"{up}{page_of(path)}#{dotted(place.module, place.unit)}"
    line = place.unit.first + definitions(place)[0].lineno - 1
    return f"[{path}:{line}]({target})"


def file_of(page: str) -> SourceFile | None:
    """The file that a page shows, if it shows one that has a stage."""
    path = LIBRARY / page.removeprefix(FILES).replace(".md", ".py")
    shown = page.startswith(FILES) and path.is_file()
    return source_file(path) if shown else None


def core_pages(stage: int) -> list[str]:
    """The pages of the core path of a stage, its own first."""
    files = [page_of(f"fx/{file}") for file in stages()[stage].core]
    return [f"stages/{stage:02d}.md", *files]


def read(docs: Path, name: str, kinds: dict[str, Kind]) -> Page:
    """A page below docs/; an empty one if there is none."""
    path = docs / name
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if text.startswith("---\n"):  # what is said to MkDocs
        text = text.partition("\n---\n")[2]
    return read_page(name, text.splitlines(), kinds)


def report(docs: Path, kinds: dict[str, Kind]) -> Iterator[str]:
    """The words of each stage's core, and of all pages.

    Args:
        docs: the folder of the pages.
        kinds: the blocks that there are.
    """
    names = [p.relative_to(docs).as_posix() for p in docs.rglob("*.md")]
    every = {name: read(docs, name, kinds) for name in names}
    count = {name: words(page) for name, page in every.items()}
    total = 0
    for number, stage in stages().items():
        own, *files = (
            words(every[name], core=True) if name in every else 0
            for name in core_pages(number)
        )
        total += own + sum(files)
        yield (
            f"{number:02d} {stage.title}: core {own + sum(files)} "
            f"(its page {own})"
        )
    below = sum(n for name, n in count.items() if name.startswith(FILES))
    yield f"all cores: {total} words"
    yield f"pages of files: {below}; all pages: {sum(count.values())}"
