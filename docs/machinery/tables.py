"""The claims in order: of a stage, of a document, and all of them.

`/// claims`, `/// document`, `/// ledger`; all from tests/claims.toml.
"""

from __future__ import annotations

import xml.etree.ElementTree as etree
from pathlib import Path

from docs.machinery.claimed import (
    VERDICTS,
    address,
    cite,
    code_link,
    counted,
    draw,
    ledger,
    titled,
)
from docs.machinery.directives import Kind
from docs.machinery.filtering import Filter, draw_filters, of_group
from docs.machinery.scene import Block, Scene, after, element
from stages.manifest import stages
from tests.checks.claims import Claim, Document, Section

_VERDICT = Filter(
    "verdict",
    "Statements that",
    {"holds": "hold", "changed": "changed", "na": "are not ours"},
)


def _of_stage(scene: Scene) -> etree.Element:
    """The claims that the page's stage is about, folded."""
    name = Path(scene.directive.page).stem
    rows = [
        claim
        for claim in ledger().claims.values()
        if name.isdigit() and claim.stage == int(name)
    ]
    if not rows:
        raise scene.error("/// claims belongs to the page of a stage")
    up = "../" * scene.directive.page.count("/")
    folded = element(scene.parent, "details", css="fx-of-stage")
    folded.set("data-search-exclude", "")
    said = f"The documents make {len(rows)} statements about this stage: "
    element(folded, "summary", said + counted(rows))
    listed = element(folded, "ul")
    for row in rows:
        item = element(listed, "li", f"{row.text} ")
        if row.holds == "holds":
            code_link(item, row.code, up)
        else:
            link = element(item, "a", href=f"{up}claims.md#{row.id}")
            link.text = VERDICTS[row.holds]
    return folded


def _document(scene: Scene) -> etree.Element:
    """A document, section by section."""
    source = ledger().documents.get(scene.directive.argument)
    if source is None:
        known = ", ".join(ledger().documents)
        raise scene.error(f"no such document; there are {known}")
    up = "../" * scene.directive.page.count("/")
    about = element(scene.parent, "p")
    cite(about, source.title, source.original)
    after(about[-1], f": {source.about}. ")
    if source.url:
        element(about, "a", "Read it", href=source.url)
    else:
        after(about[-1], f": {source.about}; no public address is known.")
    places = _by_section(source)
    rows = {row.id: row for some in places.values() for row in some}
    draw_filters(scene, [_VERDICT], str(len(rows)))
    for section in source.sections:
        _section(scene, source, section, places[section.name], up)
    return about


def _by_section(source: Document) -> dict[str, list[Claim]]:
    """The claims of each section of a document."""
    found: dict[str, list[Claim]] = {s.name: [] for s in source.sections}
    for claim in ledger().claims.values():
        for name in {
            place.section: None
            for place in ledger().cited[claim.id]
            if place.document == source.id
        }:
            found[name].append(claim)
    return found


def _section(
    scene: Scene,
    source: Document,
    section: Section,
    rows: list[Claim],
    up: str,
) -> None:
    """One section: where it is, and what it says."""
    place = source.sections.index(section)
    heading = element(scene.parent, "h2", titled(section))
    heading.set("id", f"section-{place}")
    box = element(scene.parent, "div", css="fx-claims")
    box.set("data-search-exclude", "")
    where = element(box, "p", css="fx-where")
    if source.url:
        words = section.original or section.title
        element(where, "a", words, href=address(source, section))
    else:
        where.text = section.original or section.title
    for row in rows:
        draw(box, row, up)
    for shown in (heading, box):
        of_group(shown, box.iter("div"), "verdict")


def _all(scene: Scene) -> etree.Element:
    """Every claim, by stage; first what the documents are."""
    sources = element(scene.parent, "dl", css="fx-documents")
    for source in ledger().documents.values():
        entry = element(sources, "dt")
        element(entry, "a", source.id, href=f"documents/{source.id}.md")
        title = element(element(sources, "dd"), "cite", source.title)
        after(title, f", {source.about}")
    numbers = {number: number for number in ledger().documents}
    every = ledger().claims.values()
    of_document = Filter("document", "Said in", numbers)
    draw_filters(scene, [_VERDICT, of_document], str(len(every)))
    for stage, about in stages().items():
        heading = element(scene.parent, "h2", f"{stage:02} {about.title}")
        heading.set("id", f"stage-{stage:02}")
        box = element(scene.parent, "div", css="fx-claims")
        for row in every:
            if row.stage == stage:
                draw(box, row, "", anchor=True)
        of_group(heading, box.iter("div"), "verdict", "document")
    return sources


BLOCKS = {
    "claims": Block(Kind(False, {}, "none"), _of_stage),
    "document": Block(Kind(True, {}, "none"), _document),
    "ledger": Block(Kind(False, {}, "none"), _all),
}
