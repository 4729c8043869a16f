"""The questions of a stage's page: a program, and what it prints."""

from __future__ import annotations

from typing import NamedTuple

from docs.machinery.directives import Kind, read_page
from stages.manifest import ROOT

_KIND = Kind(True, {"answer": True, "why": False}, "prose")


class Question(NamedTuple):
    """A block `/// predict` of a page.

    Attributes:
        program: the dotted name of the function that is run.
        asked: the question, in Markdown.
        answer: what the program prints.
        why: the reason, in Markdown.
    """

    program: str
    asked: str
    answer: str
    why: str


def questions(number: int) -> list[Question]:
    """The questions of a stage's page, in its order."""
    name = f"stages/{number:02d}.md"
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    blocks = read_page(name, text.splitlines(), {"predict": _KIND}).directives
    return [
        Question(b.argument, b.body, b.option("answer"), b.option("why"))
        for b in blocks
        if b.name == "predict"
    ]
