"""The public names, with signature and docstring: `/// api`.

Public is what `fx/__init__.py` exports, what tests/api_surface.toml has of
torch.fx, and what a file of fx lists in its `__all__`.  All is read from the
files; nothing is imported.
"""

from __future__ import annotations

import ast
import re
import tomllib
import xml.etree.ElementTree as etree
from collections.abc import Iterator
from dataclasses import dataclass

from docs.machinery.directives import Kind
from docs.machinery.literate import dotted
from docs.machinery.scene import Block, Scene, after, element
from docs.machinery.source import (
    ROOT,
    Module,
    Place,
    Unit,
    UnknownName,
    find,
    page_of,
    statements,
)

SURFACE = ROOT / "tests" / "api_surface.toml"


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
            if isinstance(node, ast.Assign) and _is_all(node):
                for name in ast.literal_eval(node.value):
                    if not _is_module(module.name, name):
                        yield module.name, name


def _is_all(node: ast.Assign) -> bool:
    """Is it `__all__ = …`?"""
    target = node.targets[0]
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
    try:
        return find(f"{module}.{name}")
    except UnknownName:
        pass
    try:
        found = find(module).module
    except UnknownName:
        return None
    for node in statements(found):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if name == (alias.asname or alias.name):
                    return _top(_source(found, node), alias.name)
    return None


def _source(module: Module, node: ast.ImportFrom) -> str:
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
    node = _definition(holder)
    for base in node.bases if isinstance(node, ast.ClassDef) else ():
        plain = base.value if isinstance(base, ast.Subscript) else base
        if isinstance(plain, ast.Name):
            above = _top(holder.module.name, plain.id)
            found = _member(above, name) if above else None
            if found:
                return found
    return None


def _definition(place: Place) -> ast.stmt:
    """The first statement of a unit, parsed."""
    return _definitions(place.module, place.unit)[0]


def _definitions(module: Module, unit: Unit) -> list[ast.stmt]:
    """The statements of a unit."""
    return ast.parse(module.text(unit.first, unit.last)).body


# --- drawing ----------------------------------------------------------------


def _api(scene: Scene) -> etree.Element:
    """All public names, a heading for each; each is described once."""
    known = names()
    anchors = {name.anchor for name in known}
    module = ""
    for name in known:
        if name.module != module:
            module = name.module
            element(scene.parent, "h2", module, id=f"module-{module}")
        level = "h4" if "." in name.key else "h3"
        heading = element(scene.parent, level, id=name.anchor, css="fx-name")
        element(heading, "code", name.key)
        _name(element(scene.parent, "div", css="fx-api"), name, anchors)
    return element(scene.parent, "div")


def _name(box: etree.Element, name: Name, anchors: set[str]) -> None:
    """One name: described, or a link to where it is."""
    place = name.place
    if place is None:
        owner, _, last = name.key.rpartition(".")
        made = "its fields" if last == "__init__" else "an attribute"
        element(box, "p", f"{owner}: {made}; see the class.", css="fx-where")
        return
    home = dotted(place.module, place.unit)
    if home != name.anchor and home in anchors:
        said = element(box, "p", "The same as ", css="fx-where")
        element(said, "a", home, href=f"#{home}")
    else:
        _defined(box, place)
    if name.remark:
        said = element(box, "p")
        after(element(said, "em", "Unlike torch.fx: "), name.remark)


def _defined(box: etree.Element, place: Place) -> None:
    """Signature, place and docstring."""
    nodes = _definitions(place.module, place.unit)
    said = _docstring(nodes)
    text = "\n".join(filter(None, map(_signature, nodes)))
    element(box, "code", text or place.unit.name, css="fx-sig")
    where = element(box, "p", css="fx-where")
    page = page_of(place.module.path)
    if (ROOT / "docs" / page).is_file():
        target = f"{page}#{dotted(place.module, place.unit)}"
        element(where, "a", place.module.path, href=target)
    else:
        element(where, "span", place.module.path)
    if said:
        _words(element(box, "div", css="fx-doc"), said)


def _signature(node: ast.stmt) -> str:
    """What comes before the body."""
    match node:
        case ast.FunctionDef() | ast.ClassDef():
            node.body = [ast.Expr(ast.Constant(...))]
            return ast.unparse(node).rpartition(":\n")[0]
        case ast.AnnAssign() | ast.Assign():
            text = ast.unparse(node)
            return text if len(text) < 200 else f"{text[:200]} …"
    return ""


def _docstring(nodes: list[ast.stmt]) -> str:
    """The docstring of a definition; of a variable, the string below it."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            if said := ast.get_docstring(node):
                return said
        elif isinstance(node, ast.Expr):
            return ast.get_docstring(ast.Module([node], [])) or ""
    return ""


def _words(box: etree.Element, text: str) -> None:
    """A docstring as it stands; what is in backticks is code."""
    parts = re.split(r"`([^`\n]+)`", text)
    last = element(box, "span", parts[0])
    for number, part in enumerate(parts[1:]):
        if number % 2:
            after(last, part)
        else:
            last = element(box, "code", part)


BLOCKS = {"api": Block(Kind(False, {}, "none"), _api)}
