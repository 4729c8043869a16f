"""What other people's programs did, as docs/clients.md shows it."""

from __future__ import annotations

import re

from markdown import Markdown

from docs.machinery.checking import USUAL
from docs.machinery.extension import DocsExtension
from docs.machinery.pages import DOCS, text_of
from docs.machinery.results import CALLS, read, stopped


def test_every_failure_is_there_with_its_reason() -> None:
    extension = DocsExtension("clients.md")
    text = text_of(DOCS, "clients.md").partition("---\n\n")[2]
    html = Markdown(extensions=[*USUAL, extension]).convert(text)
    assert not extension.reading.page.errors
    plain = re.sub("<svg.*?</svg>|<[^>]+>", " ", html)
    for row in read("reasons"):
        assert row["client"] in plain
    for name, calls in CALLS.items():
        for row in read(name):
            if {row[call] for call in calls} - {"right", "refused", "-"}:
                assert row["model"].rpartition("/")[2] in plain, row
    assert len(plain.split()) < 1800


def test_models_with_one_reason_stand_together() -> None:
    guard = "GuardError: x is not what the trace relied on, x.size({}) != 1"
    rows = [
        {"model": "a/one", "call": "refused", "why": guard.format(0)},
        {"model": "a/two", "call": "refused", "why": guard.format(0)},
        {"model": "a/three", "call": "refused", "why": guard.format(1)},
        {"model": "a/four", "call": "not traced", "why": "no"},
        {"model": "a/five", "call": "right", "why": ""},
    ]
    why = "the program may do something else for"
    assert list(stopped(rows, ["call"])) == [
        "not traced, four: no",
        f"refused, one, two: {why} a batch of one",
        f"refused, three: {why} other sizes",
    ]
