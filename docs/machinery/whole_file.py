"""A file of fx, whole, its docstrings beside its code: `/// file | NAME`."""

from __future__ import annotations

import ast
import xml.etree.ElementTree as etree
from collections.abc import Iterator
from itertools import groupby

from docs.machinery.directives import Kind
from docs.machinery.docstrings import docstring, draw_docstring
from docs.machinery.literate import Span, draw_code, header_of
from docs.machinery.reference import definitions
from docs.machinery.scene import Block, Scene, element
from docs.machinery.source import FILES, Module, Place, Unit, find


def _file(scene: Scene) -> etree.Element:
    """A section for the head of the file, and for each of its names."""
    directive = scene.directive
    if not directive.page.startswith(FILES):
        raise scene.error("/// file belongs to the pages of docs/files")
    module = find(directive.argument).module
    intro = element(scene.parent, "div", css="fx-doc")
    draw_docstring(intro, _without_title(_head(module)))
    for span in spans(module):
        _section(scene, span)
    return element(scene.parent, "div")


def _section(scene: Scene, span: Span) -> None:
    """What a docstring says of a name, and the code without it."""
    unit, parent = span.start, scene.parent
    alone = unit.name and (unit.kind != "value" or span.end is unit)
    said = docstring(definitions(Place(span.module, unit))) if alone else ""
    if unit.name:
        level = "h3" if "." in unit.name else "h2"
        heading = element(parent, level, id=span.anchor, css="fx-name")
        element(heading, "code", span.title)
    section = element(parent, "section", css="fx-lit")
    words = element(section, "div", css="fx-prose fx-doc")
    draw_docstring(words, said)
    draw_code(scene, section, span, hidden=set(_docstring_lines(span)))


def spans(module: Module) -> Iterator[Span]:
    """A file in order: its head, then each definition.

    What is assigned is shown with its neighbours; a class is shown up to its
    first method, and each method for itself.
    """
    for plain, units in groupby(_flat(module.units), key=_together):
        if plain:
            together = list(units)
            first, last = together[0], together[-1]
            yield Span(module, first.first, last.last, first, last)
            continue
        for unit in units:
            yield (
                header_of(module, unit)
                if unit.kind == "class"
                else Span(module, unit.first, unit.last, unit, unit)
            )


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
    return ast.get_docstring(ast.parse("\n".join(module.lines))) or ""


def _without_title(text: str) -> str:
    """A docstring without the room that its first line begins with."""
    said = text.partition(": ")[2] or text
    return said[:1].upper() + said[1:]


def _docstring_lines(span: Span) -> Iterator[int]:
    """The lines of the docstring that stands beside a span."""
    module, unit = span.module, span.start
    if unit.kind == "value" and span.end is not unit:
        return  # a text below each: they stay where they are
    text = "\n".join(module.lines[unit.first - 1 : unit.last])
    for node in ast.parse(_dedented(text)).body:
        inside = node.body if isinstance(node, _DOCUMENTED) else [node]
        for first in inside[:1]:
            if _is_string(first):
                start, end = first.lineno, first.end_lineno or first.lineno
                yield from range(unit.first + start - 1, unit.first + end)
                return


_DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _is_string(node: ast.stmt) -> bool:
    """Is it a string that stands alone?"""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _dedented(text: str) -> str:
    """The lines of a method as those of a function."""
    lines = text.split("\n")
    depth = min(len(one) - len(one.lstrip()) for one in lines if one.strip())
    return "\n".join(line[depth:] for line in lines)


BLOCKS = {"file": Block(Kind(True, {}, "none"), _file)}
