"""A file of fx, whole, its docstrings beside its code: `/// file | NAME`."""

from __future__ import annotations

import ast
import re
import xml.etree.ElementTree as etree
from collections.abc import Iterator
from itertools import groupby

from docs.machinery.directives import Kind
from docs.machinery.docstrings import Link, docstring, draw_docstring
from docs.machinery.literate import Span, dotted, draw_code, header_of
from docs.machinery.reference import definitions, docstring_lines, imported_from
from docs.machinery.scene import Block, Scene, element
from docs.machinery.source import (
    FILES,
    Module,
    Place,
    Unit,
    UnknownName,
    find,
    page_of,
    statements,
)


def _file(scene: Scene) -> etree.Element:
    """A section for the head of the file, and for each of its names."""
    directive = scene.directive
    if not directive.page.startswith(FILES):
        raise scene.error("/// file belongs to the pages of docs/files")
    module = find(directive.argument).module
    if module.path.endswith("__init__.py"):
        heading = element(scene.parent, "h2", id=module.name, css="fx-name")
        element(heading, "code", module.name)
        intro = element(scene.parent, "div", css="fx-doc")
    else:
        intro = element(scene.parent, "div", id=module.name, css="fx-doc")
    said = _without_title(_head(module))
    draw_docstring(intro, said, linking(directive.page, module, is_head=True))
    link = linking(directive.page, module)
    for span in spans(module):
        _section(scene, span, link)
    return element(scene.parent, "div")


def linking(page: str, module: Module, *, is_head: bool = False) -> Link:
    """Where the names in a file's docstrings lead on the site.

    They are what the file defines or imports, what begins with `fx.`, and the
    file's neighbours, such as `effects.py`.

    Args:
        page: the page that is drawn.
        module: its file.
        is_head: for the docstring of the file itself, which may name its
            neighbours by `effects` alone; elsewhere that may be a parameter.
    """
    names = imported(module)
    up = "../" * page.count("/")
    room = module.name.rpartition(".")[0]

    def link(text: str) -> str:
        if not _name.fullmatch(text):
            return ""
        first, dot, rest = text.partition(".")
        full = [f"{module.name}.{text}"]
        if first in names:
            full.append(f"{names[first]}{dot}{rest}")
        if text.startswith("fx."):
            full.append(text)
        if rest == "py" or (is_head and not rest):
            full.append(f"{room}.{first}")
        for name in full:
            try:
                place = find(name)
            except UnknownName:
                continue
            there = page_of(place.module.path)
            if there and not place.module.path.endswith("__init__.py"):
                unit = place.unit.name
                anchor = f"#{dotted(place.module, place.unit)}" if unit else ""
                return anchor if there == page else f"{up}{there}{anchor}"
        return ""

    return link


_name = re.compile(r"[A-Za-z_]\w*(\.\w+)*")


def imported(module: Module) -> dict[str, str]:
    """The names that a file imports from fx -> their full names."""
    names: dict[str, str] = {}
    for node in statements(module):
        if isinstance(node, ast.ImportFrom) and node.level:
            path = imported_from(module, node)
            for one in node.names:
                names[one.asname or one.name] = f"{path}.{one.name}"
    return names


def _section(scene: Scene, span: Span, link: Link) -> None:
    """What a docstring says of a name, and the code without it."""
    unit, parent = span.start, scene.parent
    said = _said(span.module, _documented(span)) if unit.name else ""
    if unit.name:
        level = "h3" if "." in unit.name else "h2"
        heading = element(parent, level, id=span.anchor, css="fx-name")
        element(heading, "code", span.title)
    section = element(parent, "section", css="fx-lit")
    words = element(section, "div", css="fx-prose fx-doc")
    draw_docstring(words, said, link)
    draw_code(scene, section, span, hidden=beside(span))


def spans(module: Module) -> Iterator[Span]:
    """A file in order: its head, then each definition.

    What is assigned without a docstring is shown with its neighbours; a class
    is shown up to its first method, and each method for itself.
    """
    for plain, units in groupby(_flat(module.units), key=_together):
        together = list(units)
        if plain == "values":
            pieces = _pieces(module, together)
        elif plain:
            pieces = [together]
        else:
            pieces = [[unit] for unit in together]
        for piece in pieces:
            first, last = piece[0], piece[-1]
            yield (
                header_of(module, first)
                if first.kind == "class"
                else Span(module, first.first, last.last, first, last)
            )


def _pieces(module: Module, values: list[Unit]) -> list[list[Unit]]:
    """Values, cut behind each docstring.

    It stands beside those above it, up to a blank line: it may be about all.
    """
    blocks: list[list[Unit]] = []
    for unit in values:
        above = module.lines[unit.first - 2].strip()
        if not blocks or not above or _said(module, blocks[-1][-1]):
            blocks.append([])
        blocks[-1].append(unit)
    pieces: list[list[Unit]] = []
    for block in blocks:
        last = pieces[-1] if pieces else block
        if last is block or any(
            _said(module, one[-1]) for one in (last, block)
        ):
            pieces.append(block)
        else:
            last += block
    return pieces


def _documented(span: Span) -> Unit:
    """The unit whose docstring stands beside a span."""
    return span.end if span.start.kind == "value" else span.start


def beside(span: Span) -> range:
    """The lines of the docstring that stands beside a span."""
    return docstring_lines(Place(span.module, _documented(span)))


def _said(module: Module, unit: Unit) -> str:
    """The docstring of a unit."""
    return docstring(definitions(Place(module, unit)))


def _flat(units: tuple[Unit, ...]) -> Iterator[Unit]:
    """The units of a file, those of a class behind its header."""
    for unit in units:
        yield unit
        inside = [one for one in unit.members if one.first > unit.header_last]
        yield from _flat(tuple(inside))


def _together(unit: Unit) -> str:
    """What a unit is shown in one piece with: "" if with none.

    `__all__` belongs to the imports, which are folded.
    """
    if unit.kind == "head" or unit.name == "__all__":
        return "head"
    return "values" if unit.kind == "value" else ""


def _head(module: Module) -> str:
    """The docstring of a file."""
    return ast.get_docstring(ast.Module([*statements(module)], [])) or ""


def _without_title(text: str) -> str:
    """A docstring without the room that its first line begins with."""
    said = text.partition(": ")[2] or text
    return said[:1].upper() + said[1:]


BLOCKS = {"file": Block(Kind(True, {}, "none"), _file)}
