"""Tables whose rows are ranked and filtered, and are cards when narrow.

`/// ranked` says which rows of the page's tables one meets often and which
sometimes, by the id in their first cell; all others are met rarely.  The
tables stay plain Markdown, so that a row can be added anywhere.  An id becomes
the row's anchor, and a link where the text names it; in its place stand the
lines below its comment in docs/examples/differences.py, if there are any.
"""

from __future__ import annotations

import re
import textwrap
import xml.etree.ElementTree as etree
from collections.abc import Callable, Iterator

from markdown import Markdown
from markdown.treeprocessors import Treeprocessor

from docs.machinery.directives import Directive, Kind, Page
from docs.machinery.filtering import Filter, draw_filters, of_group
from docs.machinery.scene import Block, Scene, element, listing
from docs.machinery.source import ROOT

_MET = {"often": "often", "sometimes": "sometimes", "rarely": "rarely"}

EXAMPLES = ROOT / "docs" / "examples" / "differences.py"


def examples() -> dict[str, str]:
    """Id -> the lines below its comment, up to the next comment."""
    text = EXAMPLES.read_text(encoding="utf-8")
    found = re.findall(
        r"^    # ([a-z-]+)\n((?:(?:    .*)?\n)+?)(?=\n\n|    # [a-z-]+\n|\Z)",
        text,
        re.MULTILINE,
    )
    return {id: textwrap.dedent(lines).strip() for id, lines in found}


def _ranked(scene: Scene) -> etree.Element:
    """The filter; the tables are ranked when they are there."""
    draw_filters(scene, [Filter("met", "Met", _MET, "often")], "rows")
    return element(scene.parent, "div")


class Ranking(Treeprocessor):
    """Gives rows their ids, ranks them, and labels their cells."""

    def __init__(self, md: Markdown, page: Callable[[], Page]) -> None:
        """Prepare for what is read as the page."""
        super().__init__(md)
        self.page = page

    def run(self, root: etree.Element) -> None:
        """Rank the tables of a page that has a `/// ranked` block."""
        page = self.page()
        for directive in page.directives:
            if directive.name == "ranked":
                known = _known(directive)
                tables = [*_tables(root)]
                for heading, table in tables:
                    _rank(heading, table, known)
                for one in _unranked(root):
                    one.set("data-met", "")
                _link([table for _, table in tables])
                for _, table in tables:
                    self._show(table)
                for name in known:
                    error = directive.error(f"no row has the id {name!r}")
                    page.errors.append(error)

    def _show(self, table: etree.Element) -> None:
        """Put code where the ids were."""
        body = next(table.iter("tbody"))
        shown = examples()
        for row in [*body]:
            if id := row.get("id"):
                row.remove(row[0])
                if id in shown:
                    code = etree.Element("tr", role="row")
                    code.set("data-met", row.get("data-met", ""))
                    cell = element(code, "td", role="cell", colspan="2")
                    cell.set("data-label", "code")
                    html = listing(shown[id], "python")
                    element(cell, "div", self.md.htmlStash.store(html))
                    body.insert([*body].index(row), code)
        for head in table.iter("tr"):
            if head[0].text == "id":
                head.remove(head[0])


def _link(tables: list[etree.Element]) -> None:
    """Let an id in the text of a row lead to the row that has it."""
    ids = {row.get("id") for table in tables for row in table.iter("tr")}

    def link(found: re.Match[str]) -> str:
        return f"[{found[0]}](#{found[1]})" if found[1] in ids else found[0]

    for table in tables:
        for cell in table.iter("td"):
            cell.text = re.sub(r"`([a-z-]+)`", link, cell.text or "")


def _known(directive: Directive) -> dict[str, str]:
    """Id -> how often one meets it."""
    return {
        id: met
        for met in ("often", "sometimes")
        for id in directive.options.get(met, ())
    }


def _tables(
    root: etree.Element,
) -> Iterator[tuple[etree.Element, etree.Element]]:
    """Each table, with the last heading before it."""
    heading = root
    for child in root:
        if child.tag in ("h2", "h3"):
            heading = child
        if child.tag == "table":
            yield heading, child


def _unranked(root: etree.Element) -> Iterator[etree.Element]:
    """All that stands in sections whose tables have no ids.

    A filter hides it, because none of it is a row that one meets.
    """
    section: list[etree.Element] = []
    for child in [*root, etree.Element("h2")]:
        if child.tag == "h2":
            tables = [one for one in section if one.tag == "table"]
            if tables and not any(_labels(one)[0] == "id" for one in tables):
                yield from section
            section = []
        section.append(child)


def _labels(table: etree.Element) -> list[str]:
    """What stands above its columns."""
    return [cell.text or "" for cell in table.iter("th")]


def _rank(
    heading: etree.Element, table: etree.Element, known: dict[str, str]
) -> None:
    """Put the rows that one meets first first; rows found leave `known`."""
    labels = _labels(table)
    body = next(table.iter("tbody"))
    table.set("class", "fx-cards")
    # Thousands of words, beside which a search would find nothing else.
    table.set("data-search-exclude", "")
    table.set("role", "table")
    for row in body:
        row.set("role", "row")
        for label, cell in zip(labels, row, strict=True):
            cell.set("data-label", label)
            cell.set("role", "cell")
        if labels[0] == "id":
            id = (row[0].text or "").strip("` ")
            row.set("id", id)
            row.set("data-met", known.pop(id, "rarely"))
    if labels[0] == "id":
        rank = list(_MET)
        met = {row: rank.index(row.get("data-met", "")) for row in body}
        body[:] = sorted(body, key=met.__getitem__)
        of_group(heading, body, "met")
        of_group(table, body, "met")


BLOCKS = {
    "ranked": Block(
        Kind(False, {"often": True, "sometimes": True}, "none"), _ranked
    )
}
