"""The claims in order: of a stage, and all of them.

`/// claims` and `/// ledger`; all from tests/claims.toml.
"""

from __future__ import annotations

import xml.etree.ElementTree as etree
from pathlib import Path

from docs.machinery.claimed import (
    VERDICTS,
    cite,
    code_link,
    counted,
    draw,
    ledger,
)
from docs.machinery.directives import Kind
from docs.machinery.filtering import Filter, draw_filters, of_group
from docs.machinery.scene import Block, Scene, after, element
from stages.manifest import stages
from tests.checks.claims import Claim

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


def _all(scene: Scene) -> etree.Element:
    """Every claim: what has changed since it was written, then by stage."""
    sources = element(scene.parent, "dl", css="fx-documents")
    for source in ledger().documents.values():
        element(sources, "dt", source.id)
        entry = element(sources, "dd")
        tag, href = ("a", {"href": source.url}) if source.url else ("span", {})
        cite(element(entry, tag, **href), source.title, source.original)
        after(entry[-1], f", {source.about}")
    numbers = {number: number for number in ledger().documents}
    every = [*ledger().claims.values()]
    of_document = Filter("document", "Said in", numbers)
    draw_filters(scene, [_VERDICT, of_document], str(len(every)))
    changed = [claim for claim in every if claim.holds == "changed"]
    _listed(scene, "Changed since the documents were written", changed)
    for stage, about in stages().items():
        rows = [one for one in every if one.stage == stage]
        rows = [one for one in rows if one not in changed]
        _listed(scene, f"{stage:02} {about.title}", rows)
    return sources


def _listed(scene: Scene, title: str, rows: list[Claim]) -> None:
    """Claims under a heading."""
    heading = element(scene.parent, "h2", title)
    heading.set("id", title.lower().replace(" ", "-"))
    box = element(scene.parent, "div", css="fx-claims")
    for row in rows:
        draw(box, row, "", anchor=True)
    of_group(heading, box.iter("div"), "verdict", "document")


BLOCKS = {
    "claims": Block(Kind(False, {}, "none"), _of_stage),
    "ledger": Block(Kind(False, {}, "none"), _all),
}
