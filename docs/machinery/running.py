"""Programs that are run for the page: `/// run`, `/// predict`.

A page shows each program whole, so that it can be pasted. What an earlier
program of the page has shown already, such as a class that all of them use, is
folded.

What a program prints is kept below build/, under a key made of every file
that it could read: fx, stages, docs/examples, and the releases of Python and
torch.  So an unchanged site is built without running anything, and nothing
shown is ever older than the code.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as etree
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Literal, TypeAlias
from weakref import WeakKeyDictionary

from markdown import Markdown

from docs.machinery.directives import Kind
from docs.machinery.scene import Block, Scene, element, html, listing, prose
from docs.machinery.source import ROOT, find, torch_version
from docs.machinery.standalone import GAP, SAVED, pieces, standalone

CACHE = ROOT / "build" / "docs"
READ = ("fx", "stages", "docs/examples", "docs/machinery")
"""Where the code is that a program of the site may use."""


Call: TypeAlias = Literal["film", "choices", "page", "Listed"]
"""What is called in a file of which a page shows something."""


class Failed(RuntimeError):
    """A program ended with an error.

    The first line of the message is the error, and its traceback follows.
    """


def printed(target: str) -> str:
    """What an example prints as a whole program.

    Args:
        target: its file or function, as `standalone` takes it.

    Raises:
        UnknownName: there is no such example.
        Failed: it raised something.
    """
    path = find(target).module.path
    return answer(
        {
            "target": target,
            "name": Path(path).name,
            "text": standalone(target),
            "beside": {name: str(file) for name, file in SAVED.items()},
        }
    )


def film(target: str, call: Call = "film") -> str:
    """What a function of a file returns: a page as HTML, all else as JSON.

    Raises:
        Failed: it raised something.
    """
    return answer({"target": target, "call": call})


def answer(request: dict[str, object]) -> str:
    """What the worker says to a request; kept for the next time.

    Raises:
        Failed: the program raised something.
    """
    state = _state()
    asked = json.dumps(request, sort_keys=True)
    key = hashlib.sha256(f"{state} {asked}".encode()).hexdigest()
    kept = CACHE / f"{key}.txt"
    if kept.is_file():
        return kept.read_text(encoding="utf-8")
    text = _run(request, state)
    if _state() == state:  # nobody wrote into the code meanwhile
        CACHE.mkdir(parents=True, exist_ok=True)
        fresh = CACHE / f"{key}.{os.getpid()}"
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(kept)
    return text


def _state() -> str:
    """A key for all code that a program may use."""
    files = [file for top in READ for file in (ROOT / top).rglob("*.py")]
    stamps = [(str(file), file.stat().st_mtime_ns) for file in sorted(files)]
    return _digest(tuple(stamps))


@lru_cache(maxsize=1)
def _digest(stamps: tuple[tuple[str, int], ...]) -> str:
    """A key for the contents of files."""
    digest = hashlib.sha256(f"{sys.version} {torch_version()}".encode())
    for name, _ in stamps:
        digest.update(Path(name).relative_to(ROOT).as_posix().encode())
        digest.update(Path(name).read_bytes())
    return digest.hexdigest()


class _Worker:
    """The process that runs things; another one when the code changes.

    It has imported torch and fx, which takes longer than most programs.
    """

    def __init__(self) -> None:
        self.state = ""
        self.process: subprocess.Popen[str] | None = None
        atexit.register(self.close)

    def close(self) -> None:
        """Let the process end: its input is over."""
        if self.process is not None:
            self.process.communicate()
            self.process = None

    def ask(self, request: str, state: str) -> str:
        """The answer to a request; "" if the process ended over it."""
        if self.process is None or state != self.state:
            self.close()
            self.process = subprocess.Popen(
                [sys.executable, "-m", "docs.machinery.worker"],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            self.state = state
        if self.process.stdin is None or self.process.stdout is None:
            raise Failed("the worker has no pipes")
        print(request, file=self.process.stdin, flush=True)
        return self.process.stdout.readline()


_WORKER = _Worker()


def _run(request: dict[str, object], state: str) -> str:
    """Run a program now."""
    line = _WORKER.ask(json.dumps(request), state)
    if not line:
        _WORKER.close()
        raise Failed("the worker ended")
    said = json.loads(line)
    text = str(said["output"])
    if not said["ok"]:
        last = text.rstrip().splitlines()[-1]
        raise Failed(f"{request['target']}: {last}\n{text.rstrip()}")
    return text


# --- blocks -----------------------------------------------------------------


def _program(scene: Scene) -> etree.Element:
    """A program beside prose, and below it what it prints."""
    target = scene.directive.argument
    path = find(target).module.path
    said = printed(target)
    if not said.strip():
        raise scene.error(f"{target} prints nothing")
    words = element(scene.parent, "div", css="fx-run-prose")
    folded = element(scene.parent, "details", css="fx-program")
    folded.set("open", "open")
    element(folded, "summary", path)
    scene.raw(folded, _folding(scene.md, pieces(target)))
    element(scene.parent, "p", "It prints", css="fx-where")
    scene.output(scene.parent, said.strip("\n"))
    return words


_SHOWN: WeakKeyDictionary[Markdown, set[str]] = WeakKeyDictionary()
"""The converter of a page -> the pieces of programs that it has shown."""


def _folding(page: Markdown, program: list[str]) -> str:
    """A listing, in which what the page has shown before is folded.

    The example itself and its call, the last two pieces, stay unfolded. It
    needs no script: a rule of CSS shows the lines when the box is checked.
    The theme's button copies `data-copy`, where there is one.
    """
    shown = _SHOWN.setdefault(page, set())
    again = shown.intersection(program[:-2])
    text = GAP.join(program)
    start, code, rest = listing(text, "python").partition("<code>")
    lines = rest.split("\n")
    first = 0
    for seen, group in groupby(program, again.__contains__):
        together = list(group)
        last = first + GAP.join(together).count("\n")
        names = [name for name in map(_named, together) if name]
        if seen and last - first > _LONG:
            box = f'<input type="checkbox"/> {" and ".join(names)}, as above'
            lines[first] = (
                f'<label class="fx-again" data-search-exclude="">{box}</label>'
                f'<span class="fx-folded">\n{lines[first]}'
            )
            lines[last] += "</span>"
        first = last + GAP.count("\n")
    shown.update(program)
    copied = html(text).replace("\n", "&#10;")
    drawn = start + code + "\n".join(lines)
    return f'<div data-copy="{copied}">{drawn}</div>'


_LONG = 2
"""Fewer lines than these are not folded."""


def _named(piece: str) -> str:
    """What a piece of a program is named by; "" for a lone statement."""
    if piece.startswith(("import ", "from ")):
        return "imports"
    found = re.search(
        r"^(?:def|class) (\w+)|^(\w+)\b.* = ", piece, re.MULTILINE
    )
    return (found[1] or found[2]) if found else ""


def _predict(scene: Scene) -> etree.Element:
    """A question; the code; the answer, folded and checked against a run.

    docs/js/predict.js adds a field for the reader's answer.
    """
    directive = scene.directive
    said = printed(directive.argument).strip()
    expected = directive.option("answer").strip()
    if said != expected:
        raise scene.error(
            f"the answer is not what the code prints.\nanswer:\n{expected}\n"
            f"the code prints:\n{said}"
        )
    box = element(scene.parent, "section", css="fx-predict")
    element(box, "p", "Predict", css="fx-label")
    words = element(box, "div")
    scene.raw(box, _folding(scene.md, pieces(directive.argument)))
    folded = element(box, "details")
    element(folded, "summary", "The answer")
    scene.output(folded, said)
    if why := directive.option("why"):
        prose(folded, "p", why)
    return words


BLOCKS = {
    "run": Block(Kind(True, {}, "prose"), _program),
    "predict": Block(
        Kind(True, {"answer": True, "why": False}, "prose"), _predict
    ),
}
