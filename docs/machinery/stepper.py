"""Draws a film: `/// trace`.

Every state is drawn in full, as HTML with its arcs as SVG.  Without script the
states stand below each other; docs/js/trace.js shows one at a time.
"""

from __future__ import annotations

import json
import xml.etree.ElementTree as etree
from typing import Any, TypeAlias

from docs.machinery import running
from docs.machinery.directives import Kind
from docs.machinery.reference import docstring_lines
from docs.machinery.scene import Block, Scene, element, html
from docs.machinery.source import find

Data: TypeAlias = dict[str, Any]
"""A film or a part of it, as docs.machinery.film wrote it."""

PAIRS = ("1", "2", "3", "4")
"""Notes of rows that belong together; each has its colour."""

ROW = 28
"""The height of a row, in the unit of the arcs; 1.4rem on the page."""

SIGNS = {"new": "+", "gone": "✗", "changed": "~", "moved": "↕", "look": "→"}

WORDS = {
    "new": "new",
    "gone": "gone",
    "changed": "changed",
    "moved": "moved",
    "look": "here",
}


def _trace(scene: Scene) -> etree.Element:
    """A film, and the prose as its caption."""
    film: Data = json.loads(running.film(scene.directive.argument))
    parts = [draw_shot(film, shot) for shot in film["shots"]]
    if len(parts) < 2:
        raise scene.error("a film needs two shots at least")
    label = html(f"Steps of {scene.directive.argument.rpartition('.')[2]}")
    states = "".join(f"<li>{part}</li>" for part in parts)
    box = element(scene.parent, "div", css="fx-film")
    scene.raw(
        box,
        f'<fx-trace aria-label="{label}" role="group" data-search-exclude>'
        f'<ol class="fx-states">{states}</ol></fx-trace>',
    )
    return element(box, "div", css="fx-caption")


def draw_shot(film: Data, shot: Data) -> str:
    """One state: the sentence, and up to three panels."""
    panels = [_source(film["source"], shot["spot"])] if film["source"] else []
    panels.append(draw_panel(film["rows"], shot))
    if any(each["code"] for each in film["shots"]):
        lines = "".join(_code_line(line) for line in shot["code"])
        listing = f'<div class="fx-text">{lines}</div>'
        panels.append(_panel(film["code"], listing, "fx-out"))
    say = html(shot["say"])
    return (
        f'<p class="fx-say">{say}</p>'
        f'<div class="fx-panels">{"".join(panels)}</div>'
    )


def draw_panel(title: str, shot: Data) -> str:
    """The nodes and arcs of one state."""
    return _panel(title, _rows(shot), "fx-nodes")


def _panel(title: str, body: str, css: str) -> str:
    """A column with its heading; it scrolls sideways by itself."""
    return (
        f'<div class="fx-panel {css}"><p class="fx-label">{html(title)}</p>'
        f'<div class="fx-scroll" tabindex="0" role="region" '
        f'aria-label="{html(title)}">{body}</div></div>'
    )


def _source(name: str, spot: Data | None) -> str:
    """The function that runs, the expression that is at work marked."""
    place = find(name)
    first, last = place.unit.first, place.unit.last
    depth = _depth(place.module.lines[first - 1 : last])
    hidden = docstring_lines(place)
    lines = [
        _source_line(place.module.lines[n - 1], n, depth, spot)
        for n in range(first, last + 1)
        if n not in hidden
    ]
    listing = f'<div class="fx-text">{"".join(lines)}</div>'
    return _panel("Source", listing, "fx-src")


def _depth(lines: tuple[str, ...]) -> int:
    """How far all lines can be moved left."""
    return min(len(s) - len(s.lstrip()) for s in lines if s.strip())


def _source_line(text: str, number: int, depth: int, spot: Data | None) -> str:
    """A line of the source, as far as it is marked."""
    if spot is None or not spot["line"] <= number <= spot["end_line"]:
        return html(text[depth:]) + "\n"
    start = spot["column"] if number == spot["line"] else depth
    end = spot["end_column"] if number == spot["end_line"] else len(text)
    before, inside, after = text[depth:start], text[start:end], text[end:]
    return f"{html(before)}<mark>{html(inside)}</mark>{html(after)}\n"


def _code_line(line: Data) -> str:
    """A line of generated code."""
    css = f' class="fx-{line["mark"]}"' if line["mark"] else ""
    return f"<span{css}>{html(line['text']) or ' '}</span>\n"


def _rows(shot: Data) -> str:
    """The nodes with their arcs."""
    rows = shot["rows"]
    if not rows:
        return '<p class="fx-empty">(none)</p>'
    items = "".join(_row(row) for row in rows)
    listed = f'<ul class="fx-rows">{items}</ul>'
    return f'<div class="fx-graph">{_arcs(shot)}{listed}</div>'


def _row(row: Data) -> str:
    """One node."""
    mark = row["mark"]
    css = f' class="fx-{mark}"' if mark else ""
    sign = f"<b>{SIGNS[mark]}<span> {WORDS[mark]}</span></b>" if mark else ""
    pair = f' class="fx-pair-{row["note"]}"' if row["note"] in PAIRS else ""
    note = f"<em{pair}>{html(row['note'])}</em>" if row["note"] else ""
    return (
        f"<li{css}>{sign or '<b></b>'}<strong>{html(row['name'])}</strong> "
        f"<code>{html(row['text'])}</code>{note}</li>"
    )


def _arcs(shot: Data) -> str:
    """An arrow for each use, from the value to its user."""
    place = {row["name"]: number for number, row in enumerate(shot["rows"])}
    lines = []
    for arc in shot["arcs"]:
        if arc["start"] in place and arc["end"] in place:
            start, end = place[arc["start"]], place[arc["end"]]
            lines.append(_arc(start, end, arc["mark"]))
    height = ROW * len(place)
    return (
        f'<svg viewBox="0 0 60 {height}" '
        f'style="height:{len(place) * 1.4:.1f}rem"'
        f' aria-hidden="true">{"".join(lines)}</svg>'
    )


def _arc(start: int, end: int, mark: str) -> str:
    """One arrow: further out the further it goes."""
    out = 56 - min(50, 12 * abs(end - start))
    top, bottom = ROW * start + ROW // 2 + 3, ROW * end + ROW // 2 - 3
    if end < start:
        top, bottom = top - 6, bottom + 6
    css = f' class="fx-{mark}"' if mark else ""
    if start == end:
        top, bottom, out = top - 8, bottom + 8, 30
    return (
        f'<g{css}><path d="M58 {top}C{out} {top} {out} {bottom} 52 {bottom}"/>'
        f'<path class="fx-head" d="M59 {bottom}l-7-4v8z"/></g>'
    )


BLOCKS = {"trace": Block(Kind(True, {}, "prose"), _trace)}
