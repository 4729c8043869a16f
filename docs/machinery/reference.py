"""The public names, and where each is defined.

Public is what `fx/__init__.py` exports, what tests/api_surface.toml has of
torch.fx, and what a file of fx lists in its `__all__`.  All is read from the
files; nothing is imported.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import takewhile

from docs.machinery.literate import dotted
from docs.machinery.source import (
    ROOT,
    Module,
    Place,
    UnknownName,
    find,
    statements,
)

SURFACE = ROOT / "tests" / "api_surface.toml"

_LATE = "fx.compat.names"
"""The file whose table `_NAMES` says which names are set on other files."""


@dataclass(frozen=True)
class Name:
    """A public name.

    Attributes:
        module: the module that one imports it from.
        key: its name there, `Graph.lint`.
        place: where it is defined; None for what is made at run time.
        remark: how it differs from torch.fx's.
    """

    module: str
    key: str
    place: Place | None
    remark: str = ""

    @property
    def anchor(self) -> str:
        """The heading's id."""
        return f"{self.module}.{self.key}"


def names() -> list[Name]:
    """Every public name, by module, members behind their class."""
    remarks = dict(_surface())
    keys = {*remarks, *_exports()}
    modules = sorted({module for module, _ in keys})
    return [
        Name(module, key, _resolve(module, key), remarks.get((module, key), ""))
        for module in modules
        for key in sorted(k for m, k in keys if m == module)
    ]


def lent() -> set[str]:
    """The modules and names that torch lends, by their dotted names."""
    table = tomllib.loads(SURFACE.read_text(encoding="utf-8"))
    return {
        f"{module}.{key}".rstrip(".")
        for module, rows in table.items()
        for key, row in rows.items()
        if row["status"] == "lent"
    }


def _surface() -> Iterator[tuple[tuple[str, str], str]]:
    """What the table of the surface says that fx has."""
    table = tomllib.loads(SURFACE.read_text(encoding="utf-8"))
    for module, rows in table.items():
        for key, row in rows.items():
            if key and row["status"] in ("same", "differs"):
                yield (module, key), row.get("reason", "")


def _exports() -> Iterator[tuple[str, str]]:
    """What the files of fx list in `__all__`."""
    for path in sorted((ROOT / "fx").rglob("*.py")):
        dotted = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        module = find(dotted.removesuffix(".__init__")).module
        for node in statements(module):
            if isinstance(node, ast.Assign | ast.AugAssign) and _is_all(node):
                for name in ast.literal_eval(node.value):
                    if not _is_module(module.name, name):
                        yield module.name, name


def _is_all(node: ast.Assign | ast.AugAssign) -> bool:
    """Is it `__all__ = …`, or `+=`?"""
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    return isinstance(target, ast.Name) and target.id == "__all__"


def _is_module(package: str, name: str) -> bool:
    """Does a name of a package stand for a file?"""
    return (ROOT.joinpath(*package.split("."), f"{name}.py")).is_file()


# --- where a name is defined ------------------------------------------------


def _resolve(module: str, key: str) -> Place | None:
    """The definition, through imports and base classes."""
    owner, _, member = key.rpartition(".")
    if not owner:
        return _top(module, key)
    holder = _resolve(module, owner)
    return _member(holder, member) if holder else None


def _top(module: str, name: str) -> Place | None:
    """A name at the top of a file, or where that file has it from."""
    home = set_late().get(f"{module}.{name}", "")
    try:
        found = find(module).module
        home = home or _import_of(found, name)
        place = find(f"{module}.{name}")
        # The function `fx.show` is meant, not the folder of that name.
        if place.unit.name or home in ("", f"{module}.{name}"):
            return place
    except UnknownName:
        pass
    owner, _, last = home.rpartition(".")
    return _top(owner, last) if owner else None


def _import_of(module: Module, name: str) -> str:
    """The dotted name that a file imports as `name`; "" if it does not.

    What is imported on first use is written below `if TYPE_CHECKING:`.
    """
    for node in statements(module):
        for one in node.body if isinstance(node, ast.If) else [node]:
            if isinstance(one, ast.ImportFrom):
                for alias in one.names:
                    if name == (alias.asname or alias.name):
                        return f"{imported_from(module, one)}.{alias.name}"
    return ""


@cache
def set_late() -> dict[str, str]:
    """The names that fx sets last, dotted, and where each is defined."""
    module = find(_LATE).module
    return {
        f"{_import_of(module, holder.id)}.{key.value}": _home(module, value)
        for statement in statements(module)
        for node in ast.walk(statement)
        if isinstance(node, ast.Dict)
        for holder, names in zip(node.keys, node.values, strict=True)
        if isinstance(holder, ast.Name) and isinstance(names, ast.Dict)
        for key, value in zip(names.keys, names.values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }


def _home(module: Module, value: ast.expr) -> str:
    """Where the value of such a name is defined; "" for what is computed."""
    match value:
        case ast.Name(id=name):
            return _import_of(module, name) or f"{module.name}.{name}"
        case ast.Attribute(value=ast.Name(id=holder), attr=name):
            return f"{_import_of(module, holder)}.{name}"
        case ast.Constant(value=str(path)):
            return f"fx.{path}"
    return ""


def imported_from(module: Module, node: ast.ImportFrom) -> str:
    """The module that an import takes from."""
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    above = node.level - module.path.endswith("__init__.py")
    base = parts[: len(parts) - above]
    return ".".join([*base, *filter(None, [node.module])])


def _member(holder: Place, name: str) -> Place | None:
    """A member of a class, or of a class that it inherits from."""
    wanted = f"{holder.unit.name}.{name}"
    for unit in holder.unit.members:
        if unit.name == wanted:
            return Place(holder.module, unit)
    node = definitions(holder)[0]
    for base in node.bases if isinstance(node, ast.ClassDef) else ():
        plain = base.value if isinstance(base, ast.Subscript) else base
        if isinstance(plain, ast.Name):
            above = _top(holder.module.name, plain.id)
            found = _member(above, name) if above else None
            if found:
                return found
    return None


def definitions(place: Place) -> list[ast.stmt]:
    """The statements of a unit; of a method, not what follows its class."""
    unit, lines = place.unit, place.module.lines
    inside = lines[unit.first - 1 : unit.last]
    depth = len(inside[0]) - len(inside[0].lstrip()) if inside else 0
    own = takewhile(lambda line: line[:depth].isspace() or not line, inside)
    text = [line[depth:] for line in own] if depth else inside
    return ast.parse("\n".join(text)).body


def docstring_lines(place: Place) -> range:
    """The lines of a unit's docstring, the string below a variable too."""
    first = place.unit.first
    for node in definitions(place):
        inside = node.body[0] if isinstance(node, _DOCUMENTED) else node
        match inside:
            case ast.Expr(value=ast.Constant(value=str())):
                end = inside.end_lineno or inside.lineno
                return range(first + inside.lineno - 1, first + end)
    return range(0)


_DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


# --- one entry for each definition ------------------------------------------


@dataclass
class Entry:
    """A definition, under all the names that one can import it by.

    Attributes:
        names: the shortest first.
        members: of a class, each an entry of its own.
    """

    names: list[Name]
    members: list[Entry] = field(default_factory=list)

    @property
    def name(self) -> Name:
        """The name to use."""
        return self.names[0]


def entries(known: Sequence[Name]) -> dict[str, Entry]:
    """What is public, by the anchor of each top-level name.

    An alias has the entry of what it is another name of.
    """
    found: dict[str, Entry] = {}
    homes: dict[str, Entry] = {}
    for name in sorted(known, key=lambda n: (n.key.count("."), len(n.anchor))):
        owner, _, last = name.key.rpartition(".")
        if not owner:
            home = (
                dotted(name.place.module, name.place.unit) if name.place else ""
            )
            entry = homes.get(home or f"fx.{name.key}") or Entry([])
            entry.names.append(name)
            found[name.anchor] = homes[home or name.anchor] = entry
            homes.setdefault(name.anchor, entry)
            continue
        members = found[f"{name.module}.{owner}"].members
        same = [m for m in members if m.name.key.rpartition(".")[2] == last]
        if same:
            same[0].names.append(name)
        else:
            members.append(Entry([name]))
    for entry in found.values():
        entry.members.sort(key=lambda m: m.name.key.rpartition(".")[2])
    return found
