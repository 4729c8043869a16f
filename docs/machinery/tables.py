"""Tables drawn from data: `/// claims`, `/// ledger`."""

from __future__ import annotations

import xml.etree.ElementTree as etree
from functools import lru_cache

from docs.machinery.directives import Kind
from docs.machinery.scene import Block, Scene, after, element
from stages.floors import stage_titles
from tests.checks.claims import LEDGER, Claim, load

DOCUMENTS = {
    "000": "the overview page of the torch.fx documentation",
    "001": "an introduction to torch.fx, from a programmer's notes (Chinese)",
    "002": "notes on the design of torch.fx.proxy",
    "003": "a long article on Graph and Node (Chinese)",
    "004": "the documentation of torch.fx.passes.reinplace",
}
"""What the claims are taken from, by the number that a claim gives."""

VERDICTS = {
    "holds": "holds in torch 2.13",
    "changed": "has changed in torch 2.13",
    "n/a": "is internal to torch",
}


def claims() -> dict[str, Claim]:
    """Every row of tests/claims.toml, by id."""
    return _claims(LEDGER.stat().st_mtime_ns)


@lru_cache(maxsize=1)
def _claims(changed: int) -> dict[str, Claim]:
    """As `claims`; `changed` makes an edited file another key."""
    rows = load(LEDGER.read_text(encoding="utf-8"))
    return {row.id: row for row in rows}


def _some(scene: Scene) -> etree.Element:
    """The claims whose ids stand in the block."""
    known = claims()
    chosen = scene.directive.body.split()
    unknown = [id for id in chosen if id not in known]
    if unknown:
        raise scene.error(f"no claim is called {', '.join(unknown)}")
    if len(set(chosen)) < len(chosen):
        raise scene.error("a claim is named twice")
    return _list(scene, [known[id] for id in chosen])


def _all(scene: Scene) -> etree.Element:
    """Every claim, by stage; first what the documents are."""
    sources = element(scene.parent, "dl", css="fx-documents")
    for number, title in DOCUMENTS.items():
        element(sources, "dt", number)
        element(sources, "dd", title)
    for stage, title in stage_titles().items():
        heading = element(scene.parent, "h2", f"{stage:02} {title}")
        heading.set("id", f"stage-{stage:02}")
        rows = [row for row in claims().values() if row.stage == stage]
        _list(scene, rows, ids=True)
    return sources


def _list(
    scene: Scene, rows: list[Claim], *, ids: bool = False
) -> etree.Element:
    """Claims below each other; with ids, this is where links lead to."""
    box = element(scene.parent, "div", css="fx-claims")
    for row in rows:
        _claim(scene, box, row, ids=ids)
    return box


def _claim(scene: Scene, box: etree.Element, row: Claim, *, ids: bool) -> None:
    """One claim: what is said, where, and whether it is so."""
    item = element(box, "div", css=f"fx-claim fx-{row.holds.replace('/', '')}")
    head = element(item, "p", css="fx-where")
    if ids:
        item.set("id", row.id)
        element(head, "code", row.id)
    else:
        up = "../" * scene.directive.page.count("/")
        link = element(head, "a", href=f"{up}claims.md#{row.id}")
        element(link, "code", row.id)
    verdict = element(head, "strong", VERDICTS[row.holds], css="fx-verdict")
    after(verdict, f" · {row.where}")
    element(item, "p", row.text)
    for label, text in (("torch 2.13", row.torch), ("Note", row.note)):
        if text:
            said = element(item, "p")
            after(element(said, "em", f"{label}: "), text)
    _tests(item, row)


def _tests(item: etree.Element, row: Claim) -> None:
    """The tests that check a claim, folded."""
    if not row.test:
        element(item, "p", "No test can check this.", css="fx-where")
        return
    count = len(row.test)
    folded = element(item, "details", css="fx-tests")
    word = "test checks" if count == 1 else "tests check"
    element(folded, "summary", f"{count} {word} this")
    names = element(folded, "ul")
    for name in row.test:
        element(element(names, "li"), "code", name)


BLOCKS = {
    "claims": Block(Kind(False, {}, "words"), _some),
    "ledger": Block(Kind(False, {}, "none"), _all),
}
