"""The `/// name | argument` lines of a page, read strictly.

    /// source | fx.linked_list.linked_list.Link.prepend
        mark: before._next = x

    Prose, in Markdown.
    ///

Three slashes open a block and three slashes close it; blocks may stand inside
each other.  Whatever is not understood is an error with the page and the
line: an unknown block, an unknown option, a block that is never closed.
The page keeps its errors, and reading goes on behind them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import yaml

from docs.machinery.errors import DocsError

Body: TypeAlias = Literal["prose", "words", "none"]
"""What a block holds: Markdown, plain words, or nothing."""

_open = re.compile(r"( *)/{3,} *([\w-]+) *(?:\| *(.*?) *)?$")
_close = re.compile(r" *(/{3,}) *$")
_fence = re.compile(r" *(`{3,}|~{3,})")
_loose_option = re.compile(r" *([a-z]+):(?: |$)")
_heading = re.compile(r" {0,3}#{1,6} ")


@dataclass(frozen=True)
class Kind:
    """What a block of one name may have.

    Attributes:
        argument: must there be something behind the bar?
        options: the options it knows; True for those it must have.
        body: what stands in it.
    """

    argument: bool
    options: Mapping[str, bool]
    body: Body


@dataclass(frozen=True)
class Directive:
    """A block of a page, as its author wrote it.

    Attributes:
        page: the page's path below docs/.
        line: where it begins, from 1.
        name: what stands behind the slashes.
        argument: what stands behind the bar.
        options: the values of each option.
        body: the text inside.
        understood: whether its first lines were; if not, it is not drawn.
    """

    page: str
    line: int
    name: str
    argument: str
    options: Mapping[str, tuple[str, ...]]
    body: str = ""
    understood: bool = True

    def error(self, sentence: object) -> DocsError:
        """An error at the block's first line."""
        return DocsError(self.page, self.line, str(sentence))

    def option(self, name: str) -> str:
        """The option's one value; "" where it is not given."""
        values = self.options.get(name, ())
        if len(values) > 1:
            raise self.error(f"option {name} takes one value")
        return values[0] if values else ""

    def flag(self, name: str) -> bool:
        """Whether the option is given as `true`."""
        if self.option(name) not in ("", "true"):
            raise self.error(f"option {name} can only be true")
        return bool(self.option(name))


@dataclass
class _Open:
    """A block that is not closed yet."""

    directive: Directive
    kind: Kind
    place: int
    body: list[str] = field(default_factory=list)


@dataclass
class Page:
    """The blocks of one page, and its text with numbers in their place.

    Attributes:
        name: the page's path below docs/.
        directives: its blocks.
        lines: its text; the k-th block is opened by `//////// fx | k`, with
            fewer slashes the deeper it is.
        errors: what was not understood, or could not be drawn.
    """

    name: str
    directives: list[Directive] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    errors: list[DocsError] = field(default_factory=list)


def read_page(
    name: str,
    lines: Sequence[str],
    kinds: Mapping[str, Kind],
    offset: int = 0,
) -> Page:
    """Read a page's blocks.

    Args:
        name: the page's path below docs/, for the errors.
        lines: the page.
        kinds: the blocks that there are.
        offset: lines of the file before `lines`.

    Returns:
        The page, with an error for each line that is not understood.
    """
    return _Reader(name, lines, kinds, offset).read()


class _Reader:
    """Goes through a page once, line by line."""

    def __init__(
        self,
        name: str,
        lines: Sequence[str],
        kinds: Mapping[str, Kind],
        offset: int,
    ) -> None:
        self.page = Page(name)
        self.source = lines
        self.kinds = kinds
        self.offset = offset
        self.stack: list[_Open] = []
        self.fence = ""
        self.next = 0

    def read(self) -> Page:
        """The whole page."""
        while self.next < len(self.source):
            line = self.source[self.next]
            self.next += 1
            self._line(line)
        for left in self.stack:
            name = left.directive.name
            problem = f"/// {name} is never closed: end it with ///"
            self.page.errors.append(left.directive.error(problem))
        while self.stack:
            self._closed()
        return self.page

    def _line(self, line: str) -> None:
        """One line: of a fence, of a block's frame, or plain text."""
        fence = _fence.match(line)
        if self.fence:
            if fence and line.strip().startswith(self.fence):
                self.fence = ""
            self._text(line)
        elif fence:
            self.fence = fence[1]
            self._text(line)
        elif line.lstrip().startswith("///"):
            self._frame(line)
        else:
            self._text(line)

    def _text(self, line: str) -> None:
        """A line that is no frame."""
        for block in self.stack:
            block.body.append(line)
        if not self.stack or self.stack[-1].kind.body == "prose":
            if self.stack and not self.fence and _heading.match(line):
                self._wrong("no headings inside a block: put it above")
            self.page.lines.append(line)
        elif self.stack[-1].kind.body == "none" and line.strip():
            name = self.stack[-1].directive.name
            self._wrong(f"/// {name} holds no text; close it with ///")

    def _frame(self, line: str) -> None:
        """A line of slashes: it opens a block or closes the last one."""
        if _close.match(line):
            self._closed()
        elif opened := _open.match(line):
            if opened[1]:
                self._wrong("a block begins at the left margin")
            self._opened(opened[2], opened[3] or "")
        else:
            self._wrong(f"not understood: {line.strip()!r}")

    def _opened(self, name: str, argument: str) -> None:
        """The first line of a block; its options are read along."""
        errors = len(self.page.errors)
        kind = self.kinds.get(name)
        if kind is None:
            known = ", ".join(sorted(self.kinds))
            self._wrong(f"no block is named {name!r}; there are {known}")
            kind = Kind(bool(argument), {}, "prose")
        if bool(argument) != kind.argument:
            rule = "needs an argument" if kind.argument else "takes no argument"
            self._wrong(f"/// {name} {rule}, behind a bar")
        if self.stack and self.stack[-1].kind.body != "prose":
            self._wrong(f"{self.stack[-1].directive.name} is still open")
        directive = Directive(self.page.name, self._number, name, argument, {})
        directive = replace(
            directive,
            options=self._options(name, kind),
            understood=len(self.page.errors) == errors,
        )
        slashes = "/" * (12 - len(self.stack))
        place = len(self.page.directives)
        self.page.directives.append(directive)
        self.page.lines += ["", f"{slashes} fx | {place}", ""]
        self.stack.append(_Open(directive, kind, place))

    def _closed(self) -> None:
        """The last line of a block."""
        if not self.stack:
            self._wrong("/// closes nothing")
            return
        done = self.stack.pop()
        body = "\n".join(done.body).strip("\n")
        whole = replace(done.directive, body=body)
        if done.kind.body != "none" and not body.strip():
            self.page.errors.append(
                whole.error(f"/// {whole.name} says nothing")
            )
        self.page.directives[done.place] = whole
        self.page.lines += ["", "/" * (12 - len(self.stack)), ""]

    def _options(self, name: str, kind: Kind) -> dict[str, tuple[str, ...]]:
        """The indented lines below a block's first line."""
        taken = []
        while self.next < len(self.source):
            line = self.source[self.next]
            if not line.startswith("    ") or not line.strip():
                break
            taken.append(line)
            self.next += 1
        options = dict(self._values("\n".join(taken)))
        for option in options:
            if option not in kind.options:
                known = ", ".join(kind.options) or "none"
                self._wrong(
                    f"/// {name} has no option {option!r}; it has: {known}"
                )
        for option, needed in kind.options.items():
            if needed and option not in options:
                self._wrong(f"/// {name} needs the option {option}:")
        self._no_loose_option()
        return options

    def _no_loose_option(self) -> None:
        """Refuse an option that is not indented by four."""
        if self.next < len(self.source):
            loose = _loose_option.match(self.source[self.next])
            if loose:
                self._wrong(
                    f"indent the option {loose[1]}: by four spaces "
                    "(or leave a line free above prose)"
                )

    def _values(self, text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The options as YAML gives them, all values as strings."""
        try:
            found = yaml.load(text, yaml.BaseLoader) if text else {}
        except yaml.YAMLError as error:
            hint = "put the text in 'quotes'"
            self._wrong(f"options not understood, {hint}: {error}")
            return
        if not isinstance(found, dict):
            self._wrong("options are written `name: value`, a line each")
            return
        for name, value in found.items():
            values = value if isinstance(value, list) else [value]
            if not all(isinstance(one, str) and one for one in values):
                self._wrong(f"option {name}: a text, or [a list, of them]")
            else:
                yield str(name), tuple(values)

    @property
    def _number(self) -> int:
        """The line of the file that is being read."""
        return self.next + self.offset

    def _wrong(self, sentence: str) -> None:
        """Note an error at this line."""
        error = DocsError(self.page.name, self._number, sentence)
        self.page.errors.append(error)
