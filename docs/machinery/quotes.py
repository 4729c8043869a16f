"""Where torch.fx has what the pages name: a table of its newest release.

A block `/// torch | torch.fx.node.Node.prepend` says in which lines of torch.fx
one finds the same.  They are lines of the release that fx is compared with,
which need not be the installed one.  So they are kept in `quotes.toml` beside
this file, with a checksum of the code that stands there.

    python -m docs.machinery.quotes --check   # is it as torch has it?
    python -m docs.machinery.quotes --write   # make it anew

Both read the files of the torch that is installed, and need that release: in
`build/newest`, which `make newest` makes.  `--write` names the pages to read
again: there torch has other code now than when they were written.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import json
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path

from docs.machinery.pages import shown_whole, texts
from docs.machinery.source import (
    ROOT,
    UnknownName,
    find,
    torch_root,
    torch_version,
)

TABLE = ROOT / "docs" / "machinery" / "quotes.toml"
WRITE = "build/newest/bin/python -m docs.machinery.quotes --write"
HEAD = f"""\
# Where torch.fx has what the `/// torch` blocks of the pages name: for each
# name its first and last line, and a checksum of its code.  Not written by
# hand: {WRITE}
"""

_block = re.compile(r"/{3,} *torch *\| *(.*?) *$")
_of_torch = re.compile(r"torch\.fx: ([\w/]+)\.py, +([\w.]+)(.*)")


@dataclass(frozen=True)
class Quote:
    """A place in torch's source.

    Attributes:
        path: the file, `torch/fx/node.py`.
        name: the definition in it; "" for the top of the file.
        first: its first line.
        last: its last line.
        text: a checksum of these lines.
    """

    path: str
    name: str
    first: int
    last: int
    text: str

    @property
    def module(self) -> str:
        """The module, `torch.fx.node`."""
        parts = Path(self.path).with_suffix("").parts
        return ".".join(part for part in parts if part != "__init__")

    @property
    def dotted(self) -> str:
        """The full name, as a block has it."""
        return f"{self.module}.{self.name}".rstrip(".")


@dataclass(frozen=True)
class Table:
    """The places of one release.

    Attributes:
        torch: the release, `2.15.0`.
        quotes: the place of each full name.
    """

    torch: str
    quotes: Mapping[str, Quote]

    def quote(self, name: str) -> Quote:
        """The place of a full name.

        Raises:
            UnknownName: the table lacks it; the message says what to do.
        """
        if name in self.quotes:
            return self.quotes[name]
        near = difflib.get_close_matches(name, self.quotes, n=1, cutoff=0.8)
        hint = f"; did you mean {near[0]}?" if near else "."
        raise UnknownName(
            f"{name} is not in docs/machinery/quotes.toml{hint} If torch "
            f"{self.torch} has it: make newest, then {WRITE}"
        )


# --- the file ---------------------------------------------------------------


def table(path: Path = TABLE) -> Table:
    """The table as it is written down."""
    return _table(path.read_text(encoding="utf-8"))


@lru_cache(maxsize=4)
def _table(text: str) -> Table:
    """A table's text, read."""
    found = tomllib.loads(text)
    quotes = [
        Quote(path, name, *place)
        for path, places in found["files"].items()
        for name, place in places.items()
    ]
    return Table(found["torch"], {quote.dotted: quote for quote in quotes})


def written(made: Table) -> str:
    """A table as text: by file, in the order of the lines."""
    order = sorted(
        made.quotes.values(), key=lambda one: (one.path, one.first, -one.last)
    )
    lines = [HEAD, f"torch = {json.dumps(made.torch)}"]
    for path, quotes in groupby(order, key=lambda one: one.path):
        lines += ["", f"[files.{json.dumps(path)}]"]
        for one in quotes:
            place = json.dumps([one.first, one.last, one.text])
            lines.append(f"{json.dumps(one.name)} = {place}")
    return "\n".join(lines) + "\n"


# --- the pages, and the installed torch -------------------------------------


def quoting(docs: Path = ROOT / "docs") -> dict[str, list[str]]:
    """The pages below docs/ that quote each name."""
    found: dict[str, list[str]] = {}
    for page, text in texts(docs).items():
        for name in _names(text):
            pages = found.setdefault(name, [])
            pages += [page] if page not in pages else []
    return found


def _names(text: str) -> Iterator[str]:
    """What a page names: in its blocks, or in the file that it is made of."""
    for line in text.splitlines():
        if block := _block.match(line):
            yield block[1]
        elif whole := shown_whole(line):
            yield from torch_names("\n".join(find(whole).module.lines))


def of_torch(paragraph: str) -> tuple[str, str] | None:
    """What `torch.fx: node.py, Node.prepend, …` names, and what follows it.

    Returns:
        The full name, `torch.fx.node.Node.prepend`; None for any other text.
    """
    found = _of_torch.match(" ".join(paragraph.split()))
    if not found:
        return None
    path, name, rest = found.groups()
    return f"torch.fx.{path.replace('/', '.')}.{name.rstrip('.')}", rest


def torch_names(text: str) -> Iterator[str]:
    """The names of torch that a file's docstrings give as their source."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for block in re.split(r"\n\s*\n", node.value):
                if named := of_torch(block.strip()):
                    yield named[0]


def look_up(name: str, root: Path) -> Quote:
    """The place of a name in a torch that is installed in a folder.

    Raises:
        UnknownName: torch has no such name there.
    """
    found = find(name, root)
    module, unit = found.module, found.unit
    text = module.text(unit.first, unit.last)
    checksum = hashlib.sha256(text.encode()).hexdigest()[:12]
    return Quote(module.path, unit.name, unit.first, unit.last, checksum)


def installed(pages: Mapping[str, list[str]]) -> tuple[Table, list[str]]:
    """A table made from the installed torch, and what it does not have."""
    quotes, gone = {}, []
    for name, where in pages.items():
        try:
            quotes[name] = look_up(name, torch_root())
        except UnknownName as error:
            gone.append(f"{name} ({_pages(where)}): {error}")
    return Table(torch_version(), quotes), gone


def differences(old: Table, new: Table) -> Iterator[str]:
    """A sentence for each name whose place or code differs."""
    for name in sorted({*old.quotes, *new.quotes}):
        was, now = old.quotes.get(name), new.quotes.get(name)
        if was is None:
            yield f"{name}: not in the table"
        elif now is None:
            yield f"{name}: in the table, and quoted by no page"
        elif was.text != now.text:
            yield f"{name}: torch {new.torch} has other code there"
        elif was != now:
            yield (
                f"{name}: lines {now.first}-{now.last} of {now.path} in torch "
                f"{new.torch}, {was.first}-{was.last} in the table"
            )


def other_code(old: Table, new: Table) -> Iterator[str]:
    """The names whose code is another one, of those in both tables."""
    for name in sorted(old.quotes.keys() & new.quotes.keys()):
        if old.quotes[name].text != new.quotes[name].text:
            yield name


def _pages(names: list[str]) -> str:
    """Pages, as one opens them."""
    return ", ".join(f"docs/{name}" for name in names)


def _minor(version: str) -> tuple[int, ...]:
    """The first two numbers of a release."""
    return tuple(map(int, version.split(".")[:2]))


# --- the commands -----------------------------------------------------------


def check(path: Path = TABLE, docs: Path = ROOT / "docs") -> list[str]:
    """What is wrong with the table, in sentences.

    Args:
        path: the table.
        docs: the folder of the pages.
    """
    old = table(path)
    if _minor(old.torch) != _minor(torch_version()):
        return [
            f"the table is of torch {old.torch}, and torch {torch_version()} "
            "is installed: nothing was compared"
        ]
    new, gone = installed(quoting(docs))
    return [*gone, *differences(old, new)]


def write(path: Path = TABLE, docs: Path = ROOT / "docs") -> list[str]:
    """Make the table anew; what is to be done then, in sentences.

    Nothing is written if the installed torch is older than the table's, or
    lacks a name.

    Args:
        path: where it goes.
        docs: the folder of the pages.
    """
    pages = quoting(docs)
    new, gone = installed(pages)
    old = table(path) if path.is_file() else new
    if _minor(new.torch) < _minor(old.torch):
        return [
            f"torch {new.torch} is installed, and the table is of torch "
            f"{old.torch}: use {WRITE}"
        ]
    if not gone:
        path.write_text(written(new), encoding="utf-8")
    return gone + [
        f"{_pages(pages[name])}: read what is said of {name}, which has other "
        f"code in torch {new.torch}"
        for name in other_code(old, new)
    ]


def main(arguments: list[str]) -> int:
    """Do what the argument says, and return the exit status."""
    match arguments:
        case ["--check"]:
            wrong = check()
            good = f"{len(table().quotes)} places in torch {table().torch}: "
            print("\n".join(wrong or [good + "as the table has them"]))
            if wrong:
                print(f"to make the table anew: {WRITE}")
            return int(bool(wrong))
        case ["--write"]:
            print("\n".join(write() or ["written; no page has to be read"]))
            return int(table().torch != torch_version())
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
