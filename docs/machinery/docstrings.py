"""Docstrings, drawn: paragraphs, tables of arguments, torch's own lines."""

from __future__ import annotations

import ast
import re
import textwrap
import xml.etree.ElementTree as etree
from collections.abc import Callable, Iterator
from typing import TypeAlias

from docs.machinery.scene import after, element
from docs.machinery.torch_source import of_torch, where

Link: TypeAlias = Callable[[str], str]
"""What a name in backticks is linked to: an address, or "" for no link."""


def _nowhere(name: str) -> str:
    """No name is linked."""
    return ""


def docstring(nodes: list[ast.stmt]) -> str:
    """The docstring of a definition; of a variable, the string below it."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            if said := ast.get_docstring(node):
                return said
        elif isinstance(node, ast.Expr):
            return ast.get_docstring(ast.Module([node], [])) or ""
    return ""


_part = re.compile(r"(Args|Attributes|Raises|Returns|Yields):$")
_item = re.compile(r"(\*{0,2}\w[\w.]*(?:, \*{0,2}\w[\w.]*)*): +(.*)$")


def draw_docstring(
    box: etree.Element, text: str, link: Link = _nowhere
) -> None:
    """A docstring: its paragraphs, and each of its parts as a table."""
    for title, lines in _parts(text):
        if not title:
            _paragraphs(box, lines, link)
        elif title in ("Returns", "Yields"):
            said = element(box, "p")
            element(said, "strong", f"{title}: ")
            _inline(said, " ".join(line.strip() for line in lines), link)
        else:
            _table(box, title, lines, link)


def _parts(text: str) -> Iterator[tuple[str, list[str]]]:
    """The parts of a docstring: title, or "", and lines."""
    title, lines = "", list[str]()
    for line in text.splitlines():
        head = _part.match(line)
        over = title and line and not line.startswith(" ")
        if head or over:
            yield title, lines
            title, lines = head[1] if head else "", []
        if not head:
            lines.append(line)
    yield title, lines


def _table(
    box: etree.Element, title: str, lines: list[str], link: Link
) -> None:
    """Arguments, attributes or errors: a row for each."""
    table = element(box, "table", css="fx-args")
    head = element(element(table, "thead"), "tr")
    shown = {"Args": "Argument", "Raises": "Error"}.get(title, "Attribute")
    element(head, "th", shown)
    element(head, "th", "Meaning")
    rows: list[tuple[str, list[str]]] = []
    for line in filter(
        str.strip, textwrap.dedent("\n".join(lines)).split("\n")
    ):
        if item := _item.match(line):
            rows.append((item[1], [item[2]]))
        elif rows:
            rows[-1][1].append(line.strip())
        else:
            rows.append(("", [line]))
    body = element(table, "tbody")
    for name, words in rows:
        row = element(body, "tr")
        cell = element(row, "td")
        if name:
            element(cell, "code", name)
        _inline(element(row, "td"), " ".join(words), link)


def _paragraphs(box: etree.Element, lines: list[str], link: Link) -> None:
    """Paragraphs; what is indented stays as it is, items are items."""
    for block in re.split(r"\n\s*\n", "\n".join(lines).strip("\n")):
        if not block.strip():
            continue
        if block.startswith("    "):
            still = {"tabindex": "0", "role": "group", "aria-label": "Example"}
            held = element(box, "div", css="fx-scroll", **still)
            element(held, "div", textwrap.dedent(block), css="fx-text")
        elif block.startswith("- "):
            items = element(box, "ul")
            for item in re.split(r"\n?^- ", block, flags=re.MULTILINE)[1:]:
                _inline(element(items, "li"), " ".join(item.split()), link)
        elif named := of_torch(block):
            _torch(box, *named, link)
        else:
            _inline(element(box, "p"), " ".join(block.split()), link)


def _inline(box: etree.Element, text: str, link: Link = _nowhere) -> None:
    """Text behind what is in `box`; what is in backticks is code."""
    parts = re.split(r"`([^`\n]+)`", text)
    last = element(box, "span", parts[0])
    for number, part in enumerate(parts[1:]):
        if number % 2:
            after(last, part)
        elif where := link(part):
            last = element(box, "a", href=where)
            element(last, "code", part)
        else:
            last = element(box, "code", part)


def _torch(box: etree.Element, name: str, rest: str, link: Link) -> None:
    """Where torch.fx has it, with a link to the file.

    What follows a semicolon is what it does otherwise, and stands below.
    """
    said = rest[2:] if rest.startswith("; ") else ""
    if said:
        box = element(box, "div", css="fx-torch", role="note")
    line = element(box, "p", css="fx-where")
    where(line, name)
    if said:
        _inline(element(box, "p"), said[:1].upper() + said[1:], link)
    elif rest:
        _inline(line, rest)
