"""What the source documents say, as it is drawn beside the code.

Everything comes from tests/claims.toml and the tests of its claims: each claim
names the definition of fx that realises, changes or refuses it, and is drawn
there as a mark that opens.
"""

from __future__ import annotations

import xml.etree.ElementTree as etree
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from docs.machinery.scene import after, element
from docs.machinery.source import UnknownName, find, page_of
from tests.checks.claims import (
    LEDGER,
    Cited,
    Claim,
    Document,
    Section,
    cited,
    documents,
    tested,
)

VERDICTS: Final = {
    "holds": "holds in torch 2.13",
    "changed": "has changed in torch 2.13",
    "n/a": "is internal to torch",
}


@dataclass(frozen=True)
class Ledger:
    """All claims, and the documents that they are from.

    Attributes:
        claims: by id, in the order of the ledger.
        documents: by number.
        cited: claim -> the places it is said at.
        beside: definition of fx -> what is said of it.
        pages: how many claims each page opens beside its code.
    """

    claims: dict[str, Claim]
    documents: dict[str, Document]
    cited: dict[str, tuple[Cited, ...]]
    beside: dict[str, list[Claim]]
    pages: Counter[str]

    def section(self, place: Cited) -> Section:
        """The section that a place is in."""
        sections = self.documents[place.document].sections
        return next(s for s in sections if s.name == place.section)


def ledger() -> Ledger:
    """What tests/claims.toml says."""
    return _ledger(LEDGER.stat().st_mtime_ns)


@lru_cache(maxsize=1)
def _ledger(changed: int) -> Ledger:
    """As `ledger`; `changed` makes an edited file another key."""
    sources = documents(LEDGER.read_text(encoding="utf-8"))
    claims = {claim.id: claim for claim in tested()}
    beside: dict[str, list[Claim]] = {}
    ours = [claim for claim in claims.values() if claim.code]
    for claim in ours:
        beside.setdefault(claim.code, []).append(claim)
    return Ledger(
        claims,
        {source.id: source for source in sources},
        {id: tuple(cited(claim, sources)) for id, claim in claims.items()},
        beside,
        Counter(filter(None, (_page_with(claim.code) for claim in ours))),
    )


def _page_with(name: str) -> str:
    """The page of a definition; "" if there is none, which a test reports."""
    try:
        return page_of(find(name).module.path)
    except UnknownName:
        return ""


def said_of(page: str) -> str:
    """A sentence on what the documents say of a file; "" for other pages."""
    if not page.startswith("files/"):
        return ""
    if not (count := ledger().pages[page]):
        return ""
    many = "one statement" if count == 1 else f"{count} statements"
    return f"The page Claims has {many} about it: open a § beside the code."


def mark(parent: etree.Element, name: str, up: str) -> None:
    """A mark that opens what the documents say of a definition, if they do.

    Args:
        parent: the column of the code.
        name: the definition, `fx.node.Node.args`.
        up: what leads from the page to the top of the site.
    """
    claims = ledger().beside.get(name, [])
    if not claims:
        return
    folded = element(parent, "details", css="fx-said-here")
    folded.set("data-definition", name)
    folded.set("data-search-exclude", "")
    count = len(claims)
    short = name.rpartition(".")[2]
    said = "one statement" if count == 1 else f"{count} statements"
    summary = element(folded, "summary", title=f"The documents on {short}")
    element(summary, "b", f"§{count}")
    element(summary, "span", f" {said} of the documents on {short}")
    for claim in claims:
        draw(folded, claim, up, here=True)


def draw(
    parent: etree.Element,
    claim: Claim,
    up: str,
    *,
    here: bool = False,
    anchor: bool = False,
) -> None:
    """One claim: who says it and where, and what torch.fx and fx do.

    Args:
        parent: where it goes.
        claim: the claim.
        up: what leads from the page to the top of the site.
        here: whether it stands beside the code that it is about.
        anchor: whether this is where links to the claim lead.
    """
    item = element(parent, "div", css=f"fx-claim fx-{verdict(claim)}")
    item.set("data-verdict", verdict(claim))
    places = ledger().cited[claim.id]
    item.set("data-document", " ".join({p.document: "" for p in places}))
    head = element(item, "p", css="fx-where")
    if anchor:
        item.set("id", claim.id)
        element(head, "code", claim.id)
    else:
        link = element(head, "a", href=f"{up}claims.md#{claim.id}")
        element(link, "code", claim.id)
    element(head, "strong", VERDICTS[claim.holds], css="fx-verdict")
    element(item, "p", claim.text)
    facts = element(item, "dl", css="fx-facts")
    element(facts, "dt", "Said in")
    for place in places:
        _place(element(facts, "dd"), place)
    _line(facts, "torch 2.13", claim.torch or "The same.")
    _ours(facts, claim, up)
    if not here and claim.code:
        element(facts, "dt", "Code")
        code_link(element(facts, "dd"), claim.code, up)
    if claim.note:
        _line(facts, "Note", claim.note)
    _tests(item, claim)


def verdict(claim: Claim) -> str:
    """Whether a claim holds, as a word for style sheets."""
    return claim.holds.replace("/", "")


def code_link(parent: etree.Element, name: str, up: str) -> None:
    """A link to the place where a definition is shown."""
    page = _page_with(name)
    link = element(parent, "a", href=f"{up}{page}#{name}")
    element(link, "code", name)


def _place(parent: etree.Element, place: Cited) -> None:
    """Document and section, in English and as they are named there."""
    source = ledger().documents[place.document]
    section = ledger().section(place)
    cite(parent, source.title, source.original)
    after(parent[-1], ", ")
    href = {"href": address(source, section)} if source.url else {}
    tag = "a" if source.url else "span"
    element(parent, tag, titled(section), **href)
    if section.original:
        after(parent[-1], " ")
        element(parent, "span", f"({section.original})", lang="zh")
    if place.part:
        comma = "" if place.part.startswith("(") else ","
        after(parent[-1], f"{comma} {place.part}")


def cite(parent: etree.Element, title: str, original: str) -> None:
    """A document's title, in English and its own language."""
    element(parent, "cite", title)
    if original:
        after(parent[-1], " ")
        element(parent, "span", f"({original})", lang="zh")


def titled(section: Section) -> str:
    """A section's number, if it has one, and its title in English."""
    if section.name.startswith(("§", "(")):
        return f"{section.name} {section.title}"
    return section.title


def address(source: Document, section: Section) -> str:
    """Where a section is public."""
    return f"{source.url}#{section.fragment}".removesuffix("#")


def _ours(facts: etree.Element, claim: Claim, up: str) -> None:
    """What fx does."""
    element(facts, "dt", "fx")
    said = element(facts, "dd")
    if claim.holds == "n/a":
        said.text = "Not ours."
    elif not claim.differs:
        said.text = "As torch.fx."
    else:
        said.text = "As torch.fx, with a deliberate difference: "
        for number, row in enumerate(claim.differs):
            if number:
                after(said[-1], ", ")
            link = element(said, "a", href=f"{up}differences.md#{row}")
            element(link, "code", row)


def _line(facts: etree.Element, label: str, text: str) -> None:
    """One fact, under its label."""
    element(facts, "dt", label)
    element(facts, "dd", text)


def _tests(item: etree.Element, claim: Claim) -> None:
    """The tests that check a claim, folded."""
    if not claim.test:
        element(item, "p", "No test can check this.", css="fx-where")
        return
    count = len(claim.test)
    folded = element(item, "details", css="fx-tests")
    word = "test checks" if count == 1 else "tests check"
    element(folded, "summary", f"{count} {word} this")
    names = element(folded, "ul")
    for name in claim.test:
        element(element(names, "li"), "code", name)


def counted(claims: Sequence[Claim]) -> str:
    """How many claims hold, in words."""
    holds = sum(claim.holds == "holds" for claim in claims)
    changed = sum(claim.holds == "changed" for claim in claims)
    rest = len(claims) - holds - changed
    words = f"{holds} hold in torch 2.13, {changed} have changed"
    verb = "is" if rest == 1 else "are"
    return words + (f", {rest} {verb} internal to torch" if rest else "")
