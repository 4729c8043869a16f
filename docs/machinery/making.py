"""Files that are made before the site is built, which its pages load.

They go below docs/made, which git ignores and MkDocs copies.
"""

from __future__ import annotations

import xml.etree.ElementTree as etree
from pathlib import Path

from docs.machinery import running
from docs.machinery.directives import Kind
from docs.machinery.scene import Block, Scene, element
from docs.machinery.source import ROOT

MADE = ROOT / "docs" / "made"
SHOWN = ("resnet18", "play_trace")
"""Files of docs/examples whose `page()` is a graph to look at."""


def make(folder: Path = MADE) -> None:
    """Make all of them.

    Args:
        folder: where they go.
    """
    for name in SHOWN:
        html = running.film(f"docs.examples.{name}", "page")
        html = html.replace(f"{ROOT}/", "")
        write(folder / "show" / f"{name}.html", html.encode())


def write(path: Path, content: bytes) -> None:
    """Write a file, unless it has this content already."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_bytes() != content:
        path.write_bytes(content)


def to_the_root(page: str) -> str:
    """The way from the address of a page to the site's root."""
    folder = page.removesuffix("index.md").removesuffix(".md") or "."
    return "../" * (folder.rstrip("/").count("/") + (folder != "."))


def _shown(scene: Scene) -> etree.Element:
    """A graph to look at, which is loaded when it comes into view."""
    name = scene.directive.argument
    if name not in SHOWN:
        raise scene.error(f"no page {name!r}: there are {', '.join(SHOWN)}")
    box = element(scene.parent, "div", css="fx-figure fx-shown")
    address = f"{to_the_root(scene.directive.page)}made/show/{name}.html"
    element(
        box,
        "iframe",
        src=address,
        title=scene.directive.option("title"),
        loading="lazy",
        sandbox="allow-scripts",
    )
    return element(box, "div", css="fx-caption")


BLOCKS = {"graph": Block(Kind(True, {"title": True}, "prose"), _shown)}
