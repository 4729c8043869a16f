"""The `/// name | argument` lines of a page, read strictly.

    /// source | fx.ordered.linked_list.Link.prepend
        mark: before._next = x

    Prose, in Markdown.
    ///

Three slashes open a block and three slashes close it; blocks may stand inside
each other.  Whatever is not understood is an error with the page and the
line: an unknown block, an unknown option, a block that is never closed.
Nothing is passed over and printed as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import yaml

from docs.machinery.errors import at

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
    """A block of a page, as its author wrote it."""

    page: str
    line: int
    name: str
    argument: str
    options: Mapping[str, tuple[str, ...]]
    body: str

    def option(self, name: str) -> str:
        """The option's one value; "" where it is not given."""
        values = self.options.get(name, ())
        if len(values) > 1:
            raise at(self.page, self.line, f"option {name} takes one value")
        return values[0] if values else ""

    def flag(self, name: str) -> bool:
        """Whether the option is given as `true`."""
        if self.option(name) not in ("", "true"):
            raise at(self.page, self.line, f"option {name} can only be true")
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
    """The blocks of one page, and its text with numbers in their place."""

    name: str
    directives: list[Directive] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


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
        The page: in its lines, the k-th block is opened by
        `//////// fx | k`, with fewer slashes the deeper it is.

    Raises:
        DocsError: a line is not understood.
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
        if self.stack:
            left = self.stack[-1].directive
            raise at(
                left.page,
                left.line,
                f"/// {left.name} is never closed: end it with ///",
            )
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
                raise self._error("no headings inside a block: put it above")
            self.page.lines.append(line)
        elif self.stack[-1].kind.body == "none" and line.strip():
            name = self.stack[-1].directive.name
            raise self._error(f"/// {name} holds no text; close it with ///")

    def _frame(self, line: str) -> None:
        """A line of slashes: it opens a block or closes the last one."""
        if _close.match(line):
            self._closed()
        elif opened := _open.match(line):
            if opened[1]:
                raise self._error("a block begins at the left margin")
            self._opened(opened[2], opened[3] or "")
        else:
            raise self._error(f"not understood: {line.strip()!r}")

    def _opened(self, name: str, argument: str) -> None:
        """The first line of a block; its options are read along."""
        kind = self.kinds.get(name)
        if kind is None:
            known = ", ".join(sorted(self.kinds))
            raise self._error(f"no block is called {name!r}; there are {known}")
        if bool(argument) != kind.argument:
            rule = "needs an argument" if kind.argument else "takes no argument"
            raise self._error(f"/// {name} {rule}, behind a bar")
        if self.stack and self.stack[-1].kind.body != "prose":
            raise self._error(f"{self.stack[-1].directive.name} is still open")
        line = self._number
        options = self._options(name, kind)
        directive = Directive(self.page.name, line, name, argument, options, "")
        slashes = "/" * (12 - len(self.stack))
        place = len(self.page.directives)
        self.page.directives.append(directive)
        self.page.lines += ["", f"{slashes} fx | {place}", ""]
        self.stack.append(_Open(directive, kind, place))

    def _closed(self) -> None:
        """The last line of a block."""
        if not self.stack:
            raise self._error("/// closes nothing")
        done = self.stack.pop()
        old = done.directive
        body = "\n".join(done.body).strip("\n")
        if done.kind.body != "none" and not body.strip():
            raise at(old.page, old.line, f"/// {old.name} says nothing")
        self.page.directives[done.place] = Directive(
            old.page, old.line, old.name, old.argument, old.options, body
        )
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
                raise self._error(
                    f"/// {name} has no option {option!r}; it has: {known}"
                )
        for option, needed in kind.options.items():
            if needed and option not in options:
                raise self._error(f"/// {name} needs the option {option}:")
        self._no_loose_option()
        return options

    def _no_loose_option(self) -> None:
        """Refuse an option that is not indented by four."""
        if self.next < len(self.source):
            loose = _loose_option.match(self.source[self.next])
            if loose:
                raise self._error(
                    f"indent the option {loose[1]}: by four spaces "
                    "(or leave a line free above prose)"
                )

    def _values(self, text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The options as YAML gives them, all values as strings."""
        try:
            found = yaml.load(text, yaml.BaseLoader) if text else {}
        except yaml.YAMLError as error:
            hint = "put the text in 'quotes'"
            raise self._error(
                f"options not understood, {hint}: {error}"
            ) from None
        if not isinstance(found, dict):
            raise self._error("options are written `name: value`, a line each")
        for name, value in found.items():
            values = value if isinstance(value, list) else [value]
            if not all(isinstance(one, str) and one for one in values):
                raise self._error(
                    f"option {name}: a text, or [a list, of them]"
                )
            yield str(name), tuple(values)

    @property
    def _number(self) -> int:
        """The line of the file that is being read."""
        return self.next + self.offset

    def _error(self, sentence: str) -> Exception:
        """An error at this line."""
        return at(self.page.name, self._number, sentence)
