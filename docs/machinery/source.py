"""Python files cut into named units, so that a page can say what it shows.

The units of a file are its lines, divided: each non-blank line is in exactly
one unit of each level.  A unit is a definition or an assignment, with

- the comment lines and decorators above it,
- the docstring below it (a string below an assignment documents it),
- all definitions of the same name that follow it (overloads, a property's
  setter),
- the statements without a name that follow it (a call, a `del`, an import).

What stands before the first named thing (docstring, imports) is the *head* of
the file.  The methods of a class are units of the class.
"""

from __future__ import annotations

import ast
import difflib
import importlib.util
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeAlias

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("fx", "stages", "docs", "tests")
"""Where a page may take code from."""

FILES = "files/"
"""Where the pages are that show a file whole, below docs/."""

Kind: TypeAlias = Literal["head", "function", "class", "value"]


class UnknownName(LookupError):
    """No unit has this name; the message says what there is."""


@dataclass(frozen=True)
class Unit:
    """A named stretch of lines.

    Attributes:
        name: the qualified name in the file, `Link.prepend`; "" for the head.
        first: the first line.
        last: the last line.
        kind: what it is.
        members: the units of a class.
    """

    name: str
    first: int
    last: int
    kind: Kind
    members: tuple[Unit, ...] = ()

    def all(self) -> Iterator[Unit]:
        """This unit and all units inside it."""
        yield self
        for member in self.members:
            yield from member.all()

    @property
    def header_last(self) -> int:
        """The last line before the first method of a class."""
        for member in self.members:
            if member.kind in ("function", "class"):
                return member.first - 1
        return self.last


@dataclass(frozen=True)
class Module:
    """A Python file and its units.

    Attributes:
        name: the dotted name, `fx.use_def.lint`.
        path: the path below the root of its tree, `fx/use_def/lint.py`.
        lines: the text, line by line.
        units: the units at the top, in order; the first is the head.
    """

    name: str
    path: str
    lines: tuple[str, ...]
    units: tuple[Unit, ...]

    def all(self) -> Iterator[Unit]:
        """Every unit of the file."""
        for unit in self.units:
            yield from unit.all()

    def unit(self, name: str) -> Unit:
        """The unit of that qualified name.

        Raises:
            UnknownName: there is none.
        """
        for unit in self.all():
            if unit.name == name:
                return unit
        names = [unit.name for unit in self.all() if unit.name]
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.4)
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        raise UnknownName(f"{self.path} defines no {name!r}{hint}")

    def text(self, first: int, last: int) -> str:
        """Lines first to last, moved left as far as all of them can be."""
        lines = self.lines[first - 1 : last]
        depth = min(
            (len(line) - len(line.lstrip()) for line in lines if line.strip()),
            default=0,
        )
        return "\n".join(line[depth:] for line in lines)


@dataclass(frozen=True)
class Place:
    """What a dotted name stands for: a unit of a file."""

    module: Module
    unit: Unit


# --- from names to places ---------------------------------------------------


def find(dotted: str, root: Path = ROOT) -> Place:
    """The place that a dotted name means; a file's name means its head.

    Args:
        dotted: `fx.linked_list.linked_list.Link.prepend`.
        root: the folder that the packages are in.

    Raises:
        UnknownName: no such file, or no such name in it.
    """
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        path = _file_of(root, parts[:count])
        if path is not None:
            module = read(path, root)
            return Place(module, module.unit(".".join(parts[count:])))
    raise UnknownName(f"no file for {dotted!r}: begin with a package")


def _file_of(root: Path, parts: Sequence[str]) -> Path | None:
    """The file of a module or package, if there is one."""
    base = root.joinpath(*parts)
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


def page_of(path: str) -> str:
    """The page that shows a file of fx, below docs/; "" for other files."""
    if not path.startswith("fx/"):
        return ""
    if path.endswith("/__init__.py"):
        return f"{FILES}packages.md"
    return FILES + path.removeprefix("fx/").removesuffix(".py") + ".md"


def torch_root() -> Path:
    """The folder in which torch is installed; torch is not imported."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise UnknownName("torch is not installed here")
    return Path(spec.origin).parents[1]


@lru_cache(maxsize=1)
def torch_version() -> str:
    """The release of the installed torch, read from its own file."""
    text = (torch_root() / "torch" / "version.py").read_text(encoding="utf-8")
    found = re.search(r"^__version__ = (.+)$", text, re.MULTILINE)
    return str(ast.literal_eval(found[1])).split("+")[0] if found else "?"


def read(path: Path, root: Path = ROOT) -> Module:
    """A file, cut into units (kept until the file changes)."""
    return _read(path, root, path.stat().st_mtime_ns)


@lru_cache(maxsize=512)
def _read(path: Path, root: Path, changed: int) -> Module:
    """As `read`; `changed` makes an edited file another key."""
    relative = path.relative_to(root)
    parts = relative.with_suffix("").parts
    if parts[-1] == "__init__":
        parts = parts[:-1]
    return cut(path.read_text(encoding="utf-8"), ".".join(parts), relative)


@lru_cache(maxsize=256)
def statements(module: Module) -> tuple[ast.stmt, ...]:
    """The top of a file, parsed."""
    return tuple(ast.parse("\n".join(module.lines)).body)


def cut(text: str, name: str, path: Path | str) -> Module:
    """A file's text, cut into units.

    Args:
        text: the file.
        name: its dotted name.
        path: where it is, for messages.
    """
    lines = tuple(text.splitlines())
    body = ast.parse(text, str(path)).body
    units = _cut(body, 1, len(lines), "", lines)
    return Module(name, str(path), lines, tuple(units))


# --- cutting ----------------------------------------------------------------


@dataclass
class _Group:
    """Statements that become one unit."""

    name: str
    first: int
    last: int
    nodes: list[ast.stmt]


def _cut(
    body: Sequence[ast.stmt],
    first: int,
    last: int,
    prefix: str,
    lines: Sequence[str],
) -> Iterator[Unit]:
    """The units of a body that covers the lines first to last."""
    groups = [_Group("", first, first - 1, [])]
    for node in body:
        group, name = groups[-1], _name(node)
        end = node.end_lineno or node.lineno
        if name is None or name == group.name:
            group.nodes.append(node)
            group.last = end
        else:
            groups.append(_Group(name, group.last + 1, end, [node]))
    groups[-1].last = last
    for group in groups:
        unit = _unit(group, prefix, lines)
        if unit.first <= unit.last:
            yield unit


def _unit(group: _Group, prefix: str, lines: Sequence[str]) -> Unit:
    """A group as a unit: blank lines around it fall away."""
    first, last = group.first, group.last
    while first <= last and not lines[first - 1].strip():
        first += 1
    while last >= first and not lines[last - 1].strip():
        last -= 1
    name = prefix + group.name if group.name else ""
    kind = _kind(group.nodes[0] if group.name else None)
    members: tuple[Unit, ...] = ()
    if kind == "class":
        members = tuple(_members(group, last, name, lines))
    return Unit(name, first, last, kind, members)


def _members(
    group: _Group, last: int, name: str, lines: Sequence[str]
) -> Iterator[Unit]:
    """The units of a class, without its head."""
    node = group.nodes[0]
    if isinstance(node, ast.ClassDef):
        for unit in _cut(node.body, node.lineno, last, f"{name}.", lines):
            if unit.name:
                yield unit


def _kind(node: ast.stmt | None) -> Kind:
    """What sort of unit a first statement makes."""
    match node:
        case None:
            return "head"
        case ast.ClassDef():
            return "class"
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return "function"
    return "value"


def _name(node: ast.stmt) -> str | None:
    """The name that a statement gives to something, if it does."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return node.name
        case ast.Assign(targets=[target, *_]) | ast.AnnAssign(target=target):
            return _first_name(target)
        case ast.If() | ast.Try():
            inner = (_name(child) for child in [*node.body, *node.orelse])
            return next((name for name in inner if name), None)
    return None


def _first_name(target: ast.expr) -> str | None:
    """The (first) variable that is assigned to; None for `a.b`, `a[b]`."""
    match target:
        case ast.Name():
            return target.id
        case ast.Tuple(elts=[first, *_]):
            return _first_name(first)
    return None
