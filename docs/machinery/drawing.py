"""Drawings on a page: `/// picture`."""

from __future__ import annotations

import importlib
import xml.etree.ElementTree as etree

from docs.machinery.directives import Kind
from docs.machinery.scene import Block, Scene, element
from docs.machinery.source import ROOT, UnknownName
from docs.machinery.svg import Canvas

PICTURES = ROOT / "docs" / "machinery" / "pictures"


def names() -> list[str]:
    """The drawings that there are."""
    files = PICTURES.glob("[a-z]*.py")
    return sorted(file.stem for file in files)


def picture(name: str) -> Canvas:
    """A drawing.

    Raises:
        UnknownName: there is none of that name.
    """
    if name not in names():
        raise UnknownName(
            f"no picture {name!r}: there are {', '.join(names())}"
        )
    module = importlib.import_module(f"docs.machinery.pictures.{name}")
    drawn = module.draw()
    if not isinstance(drawn, Canvas):
        raise UnknownName(f"picture {name}: draw() must return a Canvas")
    return drawn


def _picture(scene: Scene) -> etree.Element:
    """A drawing, and the prose as its caption."""
    drawn = picture(scene.directive.argument)
    beside = scene.directive.flag("beside")
    box = element(scene.parent, "div", css="fx-figure" + " fx-beside" * beside)
    scene.raw(box, drawn.svg())
    return element(box, "div", css="fx-caption")


BLOCKS = {"picture": Block(Kind(True, {"beside": False}, "prose"), _picture)}
