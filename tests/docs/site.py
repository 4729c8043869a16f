"""Builds the site for tests, whole or as one page, the way `make docs` does."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from docs.machinery.source import ROOT

SITE = "http://127.0.0.1:8000/"
"""An address for links; nothing is asked there."""


def build(config: Path, target: Path, url: str = SITE) -> str:
    """Build a site strictly.

    Args:
        config: its mkdocs.yml.
        target: where it goes.
        url: where it will be served from.

    Returns:
        What MkDocs says.

    Raises:
        subprocess.CalledProcessError: it failed; `output` says why.
    """
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    return subprocess.run(
        [*command, "-f", str(config), "-d", str(target)],
        cwd=ROOT,
        env={**os.environ, "SITE_URL": url, "NO_MKDOCS_2_WARNING": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    ).stdout


@dataclass(frozen=True)
class Outcome:
    """What became of a strict build.

    Attributes:
        site: where it went.
        status: the exit status of MkDocs.
        said: what MkDocs said.
        pages: what was built; nothing if the build broke off.
        warnings: page below docs/ -> what the build said of it.
        elsewhere: what it said of no page.
    """

    site: Path
    status: int
    said: str
    pages: dict[str, Html]
    warnings: dict[str, list[str]]
    elsewhere: list[str]


def outcome_of(config: Path, target: Path) -> Outcome:
    """Build a site strictly; MkDocs writes it to the end before it fails."""
    status = 0
    try:
        said = build(config, target)
    except subprocess.CalledProcessError as error:
        status, said = error.returncode, error.output
    warnings: dict[str, list[str]] = {}
    elsewhere = []
    for text in re.findall(r"^(?:WARNING|ERROR) +- +(.+)", said, re.MULTILINE):
        if page := re.match(r"(?:docs/|Doc file ')([\w./-]+\.md)", text):
            warnings.setdefault(page[1], []).append(text)
        else:
            elsewhere.append(text)
    return Outcome(target, status, said, pages(target), warnings, elsewhere)


def html_of(page: str) -> str:
    """Where a page of docs/ goes, below the site."""
    path = Path(page).with_suffix("")
    folder = path.parent if path.name == "index" else path
    return (folder / "index.html").as_posix()


def one_page(folder: Path, pages: dict[str, str], more: str = "") -> Path:
    """The project's own configuration, for other pages.

    Args:
        folder: where the pages are put.
        pages: their Markdown, by path.
        more: lines for the configuration.

    Returns:
        The mkdocs.yml to build with.
    """
    for name, text in pages.items():
        path = folder / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for asset in ("css", "js"):
        to = folder / "docs" / asset
        shutil.copytree(ROOT / "docs" / asset, to, dirs_exist_ok=True)
    nav = "nav:\n" + "".join(f"  - {name}\n" for name in pages)
    config = folder / "mkdocs.yml"
    base = f"INHERIT: {ROOT / 'mkdocs.yml'}\ndocs_dir: docs\nwatch: []\n"
    # MkDocs looks for hooks beside the configuration.
    base += f"hooks: [{ROOT / 'docs' / 'machinery' / 'hook.py'}]\n"
    config.write_text(base + (more or nav), encoding="utf-8")
    return config


@dataclass
class Html(HTMLParser):
    """What a test wants to know of a built page."""

    text: str
    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    headings: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.text)

    def handle_starttag(
        self, tag: str, attrs: list[tuple[str, str | None]]
    ) -> None:
        """Note ids, links, and what the browser will fetch."""
        values = {name: value or "" for name, value in attrs}
        if "id" in values:
            self.ids.add(values["id"])
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in ("script", "img", "iframe", "source") and "src" in values:
            self.loads.append(values["src"])
        if tag == "link" and values.get("rel") in ("stylesheet", "icon"):
            self.loads.append(values["href"])


def pages(site: Path) -> dict[str, Html]:
    """Every page of a built site, by its path below the site.

    What docs/made has is no page of the site, but something that pages load.
    """
    return {
        file.relative_to(site).as_posix(): Html(file.read_text("utf-8"))
        for file in sorted(site.rglob("*.html"))
        if site / "made" not in file.parents
    }


def dead_links(site: Path, found: dict[str, Html]) -> Iterator[str]:
    """The links within the site that lead nowhere."""
    for name, page in found.items():
        if name == "404.html":
            continue
        for link in page.links:
            problem = _problem(site, found, urljoin(SITE + name, link))
            if problem:
                yield f"{name}: {link}: {problem}"


def _problem(site: Path, found: dict[str, Html], link: str) -> str:
    """What is wrong with an absolute link; "" if nothing."""
    if not link.startswith(SITE):
        return ""
    plain, anchor = urldefrag(link)
    path = unquote(urlsplit(plain).path).lstrip("/")
    name = f"{path}index.html" if path.endswith("/") or not path else path
    if not (site / name).is_file():
        return "no such page"
    if anchor and name in found and unquote(anchor) not in found[name].ids:
        return "no such place on the page"
    return ""
