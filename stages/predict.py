"""`python -m stages predict 03`: two minutes with a program before the page.

The program is one of the questions on the stage's page, with the learner's fx
and what is borrowed.  One says what it prints, and then it is run.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import re
from typing import NamedTuple

from rich.console import Console
from rich.markdown import Markdown
from rich.padding import Padding
from rich.panel import Panel
from rich.syntax import Syntax

from docs.machinery.directives import Kind, read_page
from stages import functions
from stages.manifest import ROOT, Stage

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


def question(stage: Stage) -> Question:
    """The question that a stage begins with.

    Raises:
        LookupError: the stage's page does not ask it.
    """
    for one in questions(stage.number):
        if one.program == stage.first:
            return one
    raise LookupError(f"page {stage.number:02d} does not ask {stage.first}")


def ask(stage: Stage, guess: str | None, console: Console) -> bool:
    """Show the question, run its program, and compare.

    Args:
        stage: the stage.
        guess: what the learner thinks; None if it is to be asked for.
        console: where to print, and to ask.

    Returns:
        Whether the guess is what the program prints.
    """
    asked = question(stage)
    console.print(f"Stage {stage.number:02d}, {stage.title}", style="bold")
    console.print(Markdown(asked.asked))
    module, _, name = asked.program.rpartition(".")
    text = (ROOT / f"{module.replace('.', '/')}.py").read_text("utf-8")
    source = functions.source_of(text, name).rstrip()
    code = Syntax(source, "python", background_color="default")
    console.print(Padding(code, (1, 0, 1, 4)))
    if guess is None:
        guess = console.input("What does it print? ")
    printed = run(asked.program)
    console.print(Panel(printed, title="it prints", expand=False), markup=False)
    is_right = same(guess, printed)
    if is_right:
        console.print("As you said.")
    elif "\n" in printed:
        console.print("Compare it with what you said.")
    elif guess.strip():
        console.print("Not quite what you said.")
    if asked.why:
        console.print(Markdown(asked.why))
    console.print(f"\nnext: python -m stages read {stage.number:02d}")
    return is_right


def run(name: str) -> str:
    """What a program prints; `fx` is the tree that is installed."""
    module, _, function = name.rpartition(".")
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        getattr(importlib.import_module(module), function)()
    return said.getvalue().strip()


def same(guess: str, printed: str) -> bool:
    """Whether two texts have the same words, in whatever way they are put."""
    return _words(guess) == _words(printed)


def _words(text: str) -> list[str]:
    """The words and numbers of a text, without brackets and commas."""
    return re.findall(r"[^\s\[\](),']+", text.lower())
