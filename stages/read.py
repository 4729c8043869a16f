"""`python -m stages read 03`: a page as it is meant, not as it is stored.

In the repository a page is a text with blocks that the site's build fills in.
Where the site is built and a browser can be opened, the page is shown there.
Otherwise it is drawn here, part by part: code is put in, and the answer to a
question is shown after one has thought about it.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import http.server
import json
import os
import re
import sys
import textwrap
import threading
import webbrowser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from rich.console import Console
from rich.markdown import Markdown
from rich.padding import Padding
from rich.panel import Panel
from rich.syntax import Syntax

from stages.manifest import ROOT, stages

DOCS: Final = ROOT / "docs"
SITE: Final = ROOT / "site"

_opening: Final = re.compile(r"^/// (\w+)(?: \| (.*))?$")
_option: Final = re.compile(r"^    (\w+): ?(.*)$")
_link: Final = re.compile(r"\[([^\]]+)\]\([^)\s]*\)")
_at: Final = re.compile(r"\{at (\S+)\}")
_attributes: Final = re.compile(r"\{[:#.][^}]*\}")


class Block(NamedTuple):
    """A part of a page: prose, or a block that the site fills in.

    Attributes:
        kind: "" for prose, else `excerpt`, `predict`, and so on.
        name: what the block shows.
        options: as they are written.
        prose: Markdown.
    """

    kind: str
    name: str
    options: dict[str, str]
    prose: str


# --- which page, and where -------------------------------------------------


def page_of(name: str) -> Path:
    """The page of a stage, or of another name: `3`, `views`, `capstones/int8`.

    Raises:
        LookupError: there is no such page.
    """
    last = name.removeprefix("stages/").removesuffix(".md").rstrip("/")
    if last.isdecimal() and int(last) in stages():
        return DOCS / "stages" / f"{int(last):02d}.md"
    for folder in (DOCS, DOCS / "capstones"):
        path = folder / f"{name.removesuffix('.md')}.md"
        if path.is_file() and path.resolve().is_relative_to(DOCS):
            return path
    known = ", ".join(sorted(path.stem for path in DOCS.glob("*.md")))
    raise LookupError(
        f"there is no page {name!r}. A stage is a number, a capstone is "
        f"`gradient`, and the other pages are {known}"
    )


def read(
    path: Path,
    console: Console,
    *,
    terminal: bool = False,
    answers: bool = False,
    site: Path = SITE,
) -> int:
    """Show a page.

    Args:
        path: of the page.
        console: where to draw it, if no browser can show it.
        terminal: draw it here in any case.
        answers: with the answers to its questions.
        site: the built site, if there is one.
    """
    place = path.relative_to(DOCS).with_suffix("")
    built = site / ("" if place.name == "index" else place) / "index.html"
    if built.is_file() and has_browser() and not terminal:
        if built.stat().st_mtime < path.stat().st_mtime:
            console.print("The site is older than this page: `make docs`.")
        serve(site, f"{place.as_posix()}/", console)
        return 0
    draw(path, console, answers=answers)
    return 0


def has_browser() -> bool:
    """Whether a browser with windows can be opened from here."""
    if sys.platform.startswith("linux"):
        seen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
        if not seen:
            return False
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True


class _Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, and does not print each of them."""

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


def serve(site: Path, page: str, console: Console) -> None:
    """Serve a built site on this machine, and open a page of it.

    It ends with Ctrl-C.
    """
    handler = functools.partial(_Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        address = f"http://127.0.0.1:{server.server_address[1]}/{page}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        console.print(f"{address}    (Ctrl-C ends)")
        webbrowser.open(address)
        with contextlib.suppress(KeyboardInterrupt):
            _until_interrupted()
        server.shutdown()


_until_interrupted: Final = threading.Event().wait


# --- in a terminal ---------------------------------------------------------


def draw(path: Path, console: Console, *, answers: bool = False) -> None:
    """Draw a page, and wait for the reader at each heading and question.

    Where nobody can press a key, it is drawn at once, with answers left out
    unless they are asked for.
    """
    waits = console.is_terminal and sys.stdin.isatty()

    def wait(what: str) -> None:
        if waits:
            console.input(f"[dim]{what}[/dim] ")

    for count, block in enumerate(blocks(path.read_text(encoding="utf-8"))):
        if count and block.prose.startswith("## ") and not block.kind:
            wait("— Enter: next part —")
        _draw(block, console)
        if block.kind == "predict":
            if waits and not answers:
                wait("What does it print? Enter shows it.")
            if waits or answers:
                _answer(block, console)
            else:
                command = f"python -m stages read {path.stem} --answers"
                console.print(f"  (the answer: {command})")


def blocks(text: str) -> Iterator[Block]:
    """The parts of a page; a new one begins at each heading."""
    lines: list[str] = []
    rest = iter(text.splitlines())
    for line in rest:
        if found := _opening.match(line):
            yield from _prose(lines)
            lines = []
            yield _block(found[1], found[2] or "", rest)
            continue
        if line.startswith("## "):
            yield from _prose(lines)
            lines = []
        lines.append(line)
    yield from _prose(lines)


def _prose(lines: Sequence[str]) -> Iterator[Block]:
    """Prose as a part, if there is any."""
    text = "\n".join(lines).strip()
    if text:
        yield Block("", "", {}, text)


def _block(kind: str, name: str, rest: Iterator[str]) -> Block:
    """A block, of which the first line has been read."""
    options: dict[str, str] = {}
    last = ""
    lines: list[str] = []
    for line in rest:
        if line == "///":
            break
        found = _option.match(line)
        if found and not lines:
            last = found[1]
            options[last] = found[2]
        elif line.startswith("        ") and last and not lines:
            options[last] += f"\n{line.strip()}"
        elif line.strip() or lines:
            lines.append(line)
    return Block(kind, name, options, "\n".join(lines).strip())


def _draw(block: Block, console: Console) -> None:
    """Draw one part of a page, without an answer."""
    codes = {"excerpt": _excerpt, "predict": _program, "run": _program}
    draw_code = codes.get(block.kind)
    if block.kind in ("choose", "claims", "picture", "trace"):
        if block.prose:
            caption = Markdown(plain(block.prose))
            title = "a figure of the site, which `make serve` shows"
            console.print(Panel(caption, title=title))
        return
    if block.kind == "write":
        title = f"to write {block.name.partition('.')[2] or block.name}"
        console.print(Panel(Markdown(plain(block.prose)), title=title))
        return
    if block.prose:
        console.print(Markdown(plain(block.prose)))
        console.print()
    if block.kind == "exercises":
        for piece in stages()[int(block.name)].pieces:
            console.print(f"  {piece.title}: {piece.task}", markup=False)
        console.print(f"\n  pytest stages/{block.name}")
    elif block.kind == "run" and not _file(block.name)[1]:
        file = f"{block.name.replace('.', '/')}.py"
        console.print(f"  python -m stages run {file}", markup=False)
    elif draw_code is not None:
        code = draw_code(block)
        shown = Syntax(code, "python", background_color="default")
        console.print(Padding(shown, (0, 0, 1, 4)))


def plain(text: str) -> str:
    """Markdown of the site as Markdown that a terminal can show."""
    text = _attributes.sub("", _link.sub(r"\1", text))
    return _at.sub(lambda found: _place(found[1]), text)


def _place(name: str) -> str:
    """The file of a dotted name, below the project's folder."""
    return f"`{_file(name)[0].relative_to(ROOT).as_posix()}`"


def _answer(block: Block, console: Console) -> None:
    """Print what a program prints, and why."""
    answer = value_of(block.options.get("answer", ""))
    console.print(Panel(answer, title="it prints", expand=False), markup=False)
    if why := value_of(block.options.get("why", "")):
        console.print(Markdown(plain(why)))
    console.print()


def value_of(text: str) -> str:
    """An option's value, which is written in YAML."""
    if text.startswith("|"):
        return text.partition("\n")[2]
    if text.startswith('"'):
        return str(json.loads(text))
    if text.startswith("'"):
        return text[1:-1].replace("''", "'")
    return text


# --- code ------------------------------------------------------------------


def _excerpt(block: Block) -> str:
    """The code that an excerpt shows."""
    header = block.options.get("header") == "true"
    return source_of(block.name, header=header, to=block.options.get("to", ""))


def _program(block: Block) -> str:
    """The function that a block runs."""
    return source_of(block.name)


def source_of(name: str, *, header: bool = False, to: str = "") -> str:
    """The code of a dotted name: a function, class, method or variable.

    Args:
        name: such as `fx.proxy.Proxy.__init__`, or a file, `docs.examples.a`.
        header: of a class, the part before its first method.
        to: a neighbour; everything up to its end is shown.

    Raises:
        LookupError: there is no such code.
    """
    path, inner = _file(name)
    lines = path.read_text(encoding="utf-8").splitlines()
    found = ast.parse("\n".join(lines)).body
    if not inner:
        return "\n".join(lines)
    first = last = 0
    for part in inner:
        names = {key: node for node in found for key in _names(node)}
        if part not in names:
            raise LookupError(f"{path} has no {'.'.join(inner)}")
        first, last = _span(names[part], found, lines)
        if to in names and part == inner[-1]:
            _, last = _span(names[to], found, lines)
        if isinstance(node := names[part], ast.ClassDef):
            found = node.body
    if header:
        methods = [node for node in found if isinstance(node, ast.FunctionDef)]
        last = _span(methods[0], found, lines)[0] if methods else last
    return textwrap.dedent("\n".join(lines[first:last])).rstrip()


def _file(name: str) -> tuple[Path, list[str]]:
    """The file of a dotted name, and the names in it."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        path = ROOT.joinpath(*parts[:end]).with_suffix(".py")
        if path.is_file():
            return path, parts[end:]
    raise LookupError(f"there is no file for {name}")


def _names(node: ast.stmt) -> list[str]:
    """The names that a statement defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign):
        targets = [node.target]
    return [one.id for one in targets if isinstance(one, ast.Name)]


def _span(
    node: ast.stmt, among: Sequence[ast.stmt], lines: Sequence[str]
) -> tuple[int, int]:
    """The lines of a definition, with its comments and its docstring."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(one.lineno for one in decorators)]) - 1
    while first and lines[first - 1].strip().startswith("#"):
        first -= 1
    last = node.end_lineno or node.lineno
    place = among.index(node)
    if isinstance(node, ast.Assign | ast.AnnAssign) and place + 1 < len(among):
        after = among[place + 1]
        if isinstance(after, ast.Expr):  # its docstring
            last = after.end_lineno or last
    return first, last
