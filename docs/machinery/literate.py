"""Code beside prose: `/// source`, `/// excerpt`, `/// torch`."""

from __future__ import annotations

import ast
import difflib
import xml.etree.ElementTree as etree
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import dropwhile, groupby, takewhile
from pathlib import Path

from docs.machinery import claimed
from docs.machinery.directives import Directive, Kind, Page, read_page
from docs.machinery.errors import DocsError
from docs.machinery.pages import text_of, texts
from docs.machinery.scene import Block, Scene, element
from docs.machinery.source import (
    FILES,
    PACKAGES,
    ROOT,
    Module,
    Unit,
    UnknownName,
    find,
    page_of,
    read,
    statements,
)
from docs.machinery.torch_source import where


@dataclass(frozen=True)
class Span:
    """What a block shows: lines of a file, and which units are in them."""

    module: Module
    first: int
    last: int
    start: Unit
    end: Unit

    @property
    def units(self) -> Iterator[Unit]:
        """The named units that begin in these lines."""
        for unit in self.module.all():
            if unit.name and self.first <= unit.first <= self.last:
                yield unit

    @property
    def title(self) -> str:
        """What the heading says: names; nothing for the head of a file."""
        names = [unit.name for unit in (self.start, self.end) if unit.name]
        return " … ".join(dict.fromkeys(names))

    @property
    def anchor(self) -> str:
        """The id of the heading: the full name of the first unit."""
        return dotted(self.module, self.start)

    def text(self) -> str:
        """The lines themselves."""
        return self.module.text(self.first, self.last)

    def marked(self, texts: tuple[str, ...]) -> list[int]:
        """Which lines contain one of the texts, counted from 1.

        Raises:
            UnknownName: a text stands in none of the lines, or only in lines
                that another text marks.
        """
        lines = self.module.lines[self.first - 1 : self.last]
        for text in texts:
            others = [other for other in texts if other != text]
            if (own := [line for line in lines if text in line]) and all(
                any(other in line for other in others) for line in own
            ):
                raise UnknownName(
                    f"mark: each line with {text!r} has another mark already; "
                    "name a text that stands in its own line, or leave it out"
                )
            if not any(text in line for line in lines):
                near = difflib.get_close_matches(text, lines, n=1, cutoff=0.4)
                hint = f"; did you mean {near[0].strip()!r}?" if near else ""
                raise UnknownName(f"mark: no line here contains {text!r}{hint}")
        return [
            number
            for number, line in enumerate(lines, 1)
            if any(text in line for text in texts)
        ]


def dotted(module: Module, unit: Unit) -> str:
    """The full name of a unit; of the head, the file's."""
    return f"{module.name}.{unit.name}" if unit.name else module.name


def span_of(directive: Directive) -> Span:
    """The lines that a `source` or `excerpt` block shows.

    Raises:
        DocsError: a name is unknown, or the end stands before the start.
    """
    try:
        return _span(directive)
    except UnknownName as error:
        raise directive.error(error) from None


def _span(directive: Directive) -> Span:
    """As `span_of`."""
    if directive.argument.partition(".")[0] not in PACKAGES:
        raise UnknownName(f"code comes from {', '.join(PACKAGES)} only")
    place = find(directive.argument)
    module, start = place.module, place.unit
    header, to = directive.flag("header"), directive.option("to")
    if header and to:
        raise UnknownName("header and to: one of the two")
    if header:
        if start.kind != "class":
            raise UnknownName(f"header is for classes, not {start.name!r}")
        return header_of(module, start)
    end = _end(module, start, to) if to else start
    return Span(module, start.first, end.last, start, end)


def header_of(module: Module, unit: Unit) -> Span:
    """A class up to its first method."""
    last = unit.header_last
    while not module.lines[last - 1].strip():
        last -= 1
    return Span(module, unit.first, last, unit, unit)


def _end(module: Module, start: Unit, to: str) -> Unit:
    """The unit called `to`, as it is seen from the start.

    Tried in this order: a member of the start, a neighbour of it, then
    outwards; so a bare method name is enough inside a class.
    """
    to = to.removeprefix(module.name + ".")
    scope = start.name.split(".") if start.name else []
    while True:
        name = ".".join([*scope, to])
        found = [unit for unit in module.all() if unit.name == name]
        if found:
            break
        if not scope:
            module.unit(to)  # says what there is
        scope.pop()
    if found[0].last <= start.first:
        raise UnknownName(f"to: {name} stands before {start.name}")
    return found[0]


# --- drawing ----------------------------------------------------------------


def _source(scene: Scene) -> etree.Element:
    """Prose left, code right, under a heading of its own."""
    directive = scene.directive
    if not directive.page.startswith(FILES):
        raise scene.error(
            "/// source belongs to the pages of docs/files, where each line "
            "of fx is shown once; elsewhere write /// excerpt"
        )
    span = span_of(directive)
    heading = element(scene.parent, "h3", id=span.anchor, css="fx-name")
    if span.module.path.endswith("__init__.py"):
        element(heading, "code", span.module.name)
    elif not span.start.name:
        heading.text = "The top of the file" + (", to " if span.title else "")
    if span.title and heading.find("code") is None:
        element(heading, "code", span.title)
    section = element(scene.parent, "section", css="fx-lit")
    words = element(section, "div", css="fx-prose")
    draw_code(scene, section, span)
    return words


def draw_code(
    scene: Scene,
    section: etree.Element,
    span: Span,
    *,
    anchors: bool = True,
    hidden: Collection[int] = (),
) -> None:
    """The code column: where it is from, and the lines.

    Args:
        scene: the block.
        section: where the column goes.
        span: the lines.
        anchors: whether this is where links to its names lead, and where
            what the documents say of them stands.
        hidden: lines that are not shown, since they stand beside.
    """
    column = element(section, "div", css="fx-code")
    if anchors:  # the API and the headings find names; the index stays small
        column.set("data-search-exclude", "")
    where = f"{span.module.path}, lines {span.first}-{span.last}"
    element(column, "p", where, css="fx-where")
    marked = span.marked(scene.directive.options.get("mark", ()))
    text = span.text().split("\n")
    whole = [(span.first, span.last, False)]
    up = "../" * scene.directive.page.count("/")
    pieces = _pieces(span, marked) if anchors else iter(whole)
    for first, last, folded in _without(hidden, pieces, span.module):
        for unit in span.units if anchors and not folded else ():
            if unit.first == first:
                claimed.mark(column, dotted(span.module, unit), up)
        box = element(column, "div", css="fx-box")
        for unit in span.units if anchors else ():
            name = dotted(span.module, unit)
            if first <= unit.first <= last and name != span.anchor:
                top = f"--line: {0 if folded else unit.first - first}"
                element(box, "span", id=name, style=top, css="fx-anchor")
        start = first - span.first
        if folded:
            box = element(box, "details", css="fx-imports")
            element(box, "summary", f"Imports, lines {first}-{last}")
        scene.code(
            box,
            "\n".join(text[start : last - span.first + 1]),
            first=first,
            marked=[
                n - start for n in marked if 0 < n - start <= last - first + 1
            ],
        )


def _pieces(span: Span, marked: list[int]) -> Iterator[tuple[int, int, bool]]:
    """The lines of a span: cut before what the documents speak of.

    Folded imports are a piece of their own.
    """
    spoken_of = claimed.ledger().beside
    cuts = [
        unit.first
        for unit in span.units
        if dotted(span.module, unit) in spoken_of
    ]
    for first, last, folded in _folded(span, marked):
        starts = [first, *(cut for cut in cuts if first < cut <= last)]
        for start, end in zip(starts, [*starts[1:], last + 1], strict=True):
            final = end - 1
            while not span.module.lines[final - 1].strip():
                final -= 1
            yield start, final, folded


def _without(
    hidden: Collection[int],
    pieces: Iterable[tuple[int, int, bool]],
    module: Module,
) -> Iterator[tuple[int, int, bool]]:
    """The pieces, cut where lines are hidden; no piece ends in blank lines."""
    for first, last, folded in pieces:
        if not hidden:
            yield first, last, folded
            continue
        numbers = [n for n in range(first, last + 1) if n not in hidden]
        for _, run in groupby(
            enumerate(numbers), lambda pair: pair[1] - pair[0]
        ):
            full = [n for _, n in run if module.lines[n - 1].strip()]
            if full:
                yield full[0], full[-1], folded


def _folded(span: Span, marked: list[int]) -> Iterator[tuple[int, int, bool]]:
    """The lines of a span in up to three pieces, of which imports are folded.

    A block that marks one of the imports speaks of it, and shows all.
    """
    first, last = _imports(span)
    at = {span.first + number - 1 for number in marked}
    if last - first < 3 or at.intersection(range(first, last + 1)):
        yield span.first, span.last, False
        return
    lines = span.module.lines
    for start, end in ((span.first, first - 1), (last + 1, span.last)):
        full = [n for n in range(start, end + 1) if lines[n - 1].strip()]
        if full:
            yield full[0], full[-1], False
        if start == span.first:
            yield first, last, True


def _imports(span: Span) -> tuple[int, int]:
    """The first and last line of the imports at the top of a span.

    `__all__` is one of them: it says what the file exports.
    """
    body = statements(span.module)
    inside = [n for n in body if span.first <= n.lineno <= span.last]
    ours = takewhile(_is_import, dropwhile(lambda n: not _is_import(n), inside))
    found = list(ours)
    if not found:
        return 0, 0
    return found[0].lineno, found[-1].end_lineno or 0


def _is_import(node: ast.stmt) -> bool:
    """Whether a statement imports, or lists what is exported."""
    match node:
        case ast.Import() | ast.ImportFrom():
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return all(map(_is_import, [*node.body, *node.orelse]))
    return False


def _excerpt(scene: Scene) -> etree.Element:
    """Code quoted on another page, with prose beside it."""
    span = span_of(scene.directive)
    section = element(scene.parent, "section", css="fx-lit fx-excerpt")
    words = element(section, "div", css="fx-prose")
    draw_code(scene, section, span, anchors=False)
    column = section[-1]
    page = page_of(span.module.path)
    if page:
        up = "../" * scene.directive.page.count("/")
        where = column[0]
        where.text = ""
        link = element(where, "a", href=f"{up}{page}#{span.anchor}")
        link.text = f"{span.module.path}, lines {span.first}-{span.last}"
    return words


def _torch(scene: Scene) -> etree.Element:
    """An aside: where torch.fx has the same, and what it does otherwise."""
    name = scene.directive.argument
    if not name.startswith("torch."):
        raise scene.error("/// torch needs a name of torch: torch.fx.node.Node")
    aside = element(scene.parent, "div", css="fx-torch", role="note")
    where(element(aside, "p", css="fx-where"), name)
    return aside


_SPAN = {"mark": False, "to": False, "header": False}

BLOCKS = {
    "source": Block(Kind(True, _SPAN, "prose"), _source),
    "excerpt": Block(Kind(True, _SPAN, "prose"), _excerpt),
    "torch": Block(Kind(True, {}, "prose"), _torch),
}


# --- is each line shown, and once? ------------------------------------------


def not_drawn(page: Page) -> Iterator[str]:
    """The anchors that a page of a file lacks because of its errors.

    They are those of its file's units that no block shows, and the names that
    its blocks give wrongly.
    """
    shown = set[str]()
    for directive in page.directives:
        if directive.name == "source":
            try:
                span = span_of(directive)
                span.marked(directive.options.get("mark", ()))
            except (UnknownName, DocsError):
                yield directive.argument
            else:
                shown.update(dotted(span.module, one) for one in span.units)
    name = page.name.removeprefix(FILES).removesuffix(".md")
    path = ROOT / "fx" / f"{name}.py"
    if page.name.startswith(FILES) and path.is_file():
        module = read(path)
        for unit in module.all():
            if unit.name and dotted(module, unit) not in shown:
                yield dotted(module, unit)


def shown_lines(
    docs: Path, kinds: dict[str, Kind], only: str = ""
) -> dict[str, Counter[int]]:
    """How often each line of each file is shown by the pages of docs/files.

    A block that cannot be drawn shows nothing: its page has that error.

    Args:
        docs: the folder of the pages.
        kinds: the blocks that there are.
        only: one page, instead of all.

    Returns:
        path of the file -> line -> how often.
    """
    shown: dict[str, Counter[int]] = {}
    shown_by = {only: text_of(docs, only)} if only else texts(docs)
    for name, text in shown_by.items():
        if not name.startswith(FILES):
            continue
        lines = text.splitlines()
        for directive in read_page(name, lines, kinds).directives:
            if directive.name == "file":
                module = find(directive.argument).module
                lines_of = range(1, len(module.lines) + 1)
                shown.setdefault(module.path, Counter()).update(lines_of)
            elif directive.name == "source":
                try:
                    span = span_of(directive)
                except DocsError:
                    continue
                counter = shown.setdefault(span.module.path, Counter())
                counter.update(range(span.first, span.last + 1))
    return shown


def gaps(module: Module, shown: Counter[int]) -> Iterator[str]:
    """A sentence for each unit with lines that are shown not once.

    Args:
        module: a file of fx.
        shown: how often the pages show each of its lines.
    """
    wrong: dict[tuple[str, int], list[int]] = {}
    for number, line in enumerate(module.lines, 1):
        if line.strip() and shown[number] != 1:
            unit = _innermost(module, number)
            name = dotted(module, unit) if unit else module.name
            wrong.setdefault((name, shown[number]), []).append(number)
    for (name, times), numbers in wrong.items():
        how = f"shown {times} times" if times else "not shown"
        where = f"{module.path}:{numbers[0]}-{numbers[-1]}"
        yield f"{where}: {how}: {name}"


def _innermost(module: Module, number: int) -> Unit | None:
    """The smallest unit that has the line."""
    found = [u for u in module.all() if u.first <= number <= u.last]
    return min(found, key=lambda u: u.last - u.first, default=None)
