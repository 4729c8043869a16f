"""`python -m stages predict 03`: two minutes with a program before the page.

The program is one of the questions on the stage's page, with the learner's fx
and what is borrowed.  One says what it prints, and then it is run.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import re

from rich.console import Console
from rich.markdown import Markdown
from rich.padding import Padding
from rich.panel import Panel
from rich.syntax import Syntax

from stages.manifest import Stage
from stages.read import Block, blocks, page_of, plain, source_of, value_of


def question(stage: Stage) -> Block:
    """The question that a stage begins with.

    Raises:
        LookupError: the stage's page does not ask it.
    """
    path = page_of(f"{stage.number}")
    for block in blocks(path.read_text(encoding="utf-8")):
        if block.kind == "predict" and block.name == stage.first:
            return block
    raise LookupError(f"{path} does not ask {stage.first}")


def ask(stage: Stage, guess: str | None, console: Console) -> bool:
    """Show the question, run its program, and compare.

    Args:
        stage: the stage.
        guess: what the learner thinks; None if it is to be asked for.
        console: where to print, and to ask.

    Returns:
        Whether the guess is what the program prints.
    """
    block = question(stage)
    console.print(f"Stage {stage.number:02d}, {stage.title}", style="bold")
    console.print(Markdown(plain(block.prose)))
    code = Syntax(source_of(block.name), "python", background_color="default")
    console.print(Padding(code, (1, 0, 1, 4)))
    if guess is None:
        guess = console.input("What does it print? ")
    printed = run(block.name)
    console.print(Panel(printed, title="it prints", expand=False), markup=False)
    is_right = same(guess, printed)
    if is_right:
        console.print("As you said.")
    elif "\n" in printed:
        console.print("Compare it with what you said.")
    else:
        console.print("Not quite what you said.")
    if why := value_of(block.options.get("why", "")):
        console.print(Markdown(plain(why)))
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
