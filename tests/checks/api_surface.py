"""Compares the public names of torch.fx with those of fx.

    python -m tests.checks.api_surface --write

updates tests/api_surface.toml: it adds the names that only torch.fx has,
drops names that torch.fx no longer has, and updates all parameters.  It keeps
a status or reason written by hand.  For a row without a reason, it looks at fx
and sets the status:

    same     fx has the name, with the same parameters
    differs  fx has the name; the reason says what is different
    lent     fx does not have the name, and torch's own file is used; the
             reason says why that is enough
    out      fx does not have the name; the reason says why

The public names of a module are those in its `__all__` and those it defines
(for those that it imports, see `passed_on_problems`);
those of a class are its methods, properties and attributes.  Names with a
leading underscore do not count, except `__init__`.  The names inside of a
module or class with the status "out" are not listed.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import json
import logging
import re
import sys
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_args

import torch
import torch.fx

from fx.extra.lending.lending import TWIN
from fx.torch_private.names import TESTED_TORCH
from tests.checks.sources import ROOT

FILE = ROOT / "tests" / "api_surface.toml"
TORCH = TESTED_TORCH[1]
"""The version of torch that the file describes: run --write beside it."""

Status: TypeAlias = Literal["same", "differs", "lent", "out"]
Kind: TypeAlias = Literal["module", "class", "function", "data"]
Object: TypeAlias = Any
"""Any value of a module or class attribute."""

HEADER: Final = f"""\
# The public surface of torch.fx {TORCH}, and what fx has of it.
#
# same     fx has it, with the same parameters
# differs  fx has it; the reason says what is different
# lent     torch's own file, in which `torch.fx` means fx (fx/extra/lending)
# out      fx has it not; the reason says why
#
# New rows: python -m tests.checks.api_surface --write
# Status and reason are written by hand and kept.
"""


@dataclass(frozen=True)
class Row:
    """One name of torch.fx, and whether fx has it.

    `key` is the name under its module: "Graph.lint" in module "fx.graph";
    the module itself has the key "".
    """

    module: str
    key: str
    kind: Kind
    parameters: str | None
    status: Status
    reason: str = ""

    @property
    def name(self) -> str:
        """The full dotted name in fx."""
        return f"{self.module}.{self.key}" if self.key else self.module


@dataclass(frozen=True)
class Item:
    """The kind of the object that a name refers to, and its parameters.

    In fx, also whether it is in a file of torch.
    """

    kind: Kind
    parameters: str | None = None
    lent: bool = False


Surface: TypeAlias = dict[tuple[str, str], Item]
"""(module, key) → the object of that name."""


# --- looking at objects ----------------------------------------------------


def describe(found: Object) -> Item:
    """The kind of an object, and its parameters if it is callable."""
    if isinstance(found, ModuleType):
        return Item("module")
    if inspect.isclass(found):
        return Item("class")
    if isinstance(found, staticmethod | classmethod):
        found = found.__func__
    if isinstance(found, cached_property):
        return Item("data")  # which inspect takes for a method
    if inspect.isroutine(found):
        return Item("function", parameters(found))
    return Item("data")


def parameters(function: Callable[..., object]) -> str | None:
    """Names, order, kinds and defaults of the parameters, as text.

    Annotations are left out and `torch.fx` is replaced by `fx`, so that the
    two libraries compare equal.  None for C functions without a signature.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    bare = signature.replace(
        parameters=_without_annotations(signature),
        return_annotation=signature.empty,
    )
    text = str(bare).replace("torch.fx.", "fx.")
    text = re.sub(r"<module '([\w.]+)'[^>]*>", r"\1", text)
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def _without_annotations(
    signature: inspect.Signature,
) -> list[inspect.Parameter]:
    """The parameters without annotations, keyword-only ones sorted by name.

    A default that *is* `Parameter.empty` (as in `Graph.placeholder`) looks
    like a missing one.  If it follows another default, it is written `...`.
    """
    bare = []
    defaults = False
    for parameter in signature.parameters.values():
        lost = parameter.default is parameter.empty and (
            parameter.kind is parameter.POSITIONAL_OR_KEYWORD and defaults
        )
        default = ... if lost else parameter.default
        defaults = defaults or default is not parameter.empty
        bare.append(
            parameter.replace(annotation=parameter.empty, default=default)
        )
    named = [p for p in bare if p.kind is p.KEYWORD_ONLY]
    first = [p for p in bare if p.kind < inspect.Parameter.KEYWORD_ONLY]
    rest = [p for p in bare if p.kind is p.VAR_KEYWORD]
    return [*first, *sorted(named, key=lambda p: p.name), *rest]


def members(cls: type, package: str) -> dict[str, Item]:
    """The public members of a class: methods, properties, attributes.

    Members of a base class count only if the base is private or written in C;
    other bases have their own rows.
    """
    found: dict[str, Item] = {}
    for base in reversed(cls.__mro__):
        hidden = base.__name__.startswith("_") and _is_of(base, package)
        if base is cls or hidden or base.__module__ == "torch._C":
            for name, value in vars(base).items():
                if name == "__init__" or not name.startswith("_"):
                    found[name] = describe(value)
            for name in _attributes(base):
                found.setdefault(name, Item("data"))
    return found


def _is_of(base: type, package: str) -> bool:
    """Is the class defined in that package?"""
    return f"{base.__module__}.".startswith(f"{package}.")


def _attributes(cls: type) -> Iterator[str]:
    """Public attributes: annotated in the class, or set by `__init__`."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError):
        return
    for node in getattr(tree.body[0], "body", []):
        match node:
            case ast.AnnAssign(target=ast.Name(id=name)):
                names = [name]
            case ast.FunctionDef(name="__init__", body=body):
                names = list(_set_on_self(body))
            case _:
                names = []
        yield from (name for name in names if not name.startswith("_"))


def _set_on_self(body: Iterable[ast.AST]) -> Iterator[str]:
    """The `x` of each `self.x = …`, but not those of an inner class."""
    for node in body:
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.Lambda():
                continue
            case ast.Attribute(
                value=ast.Name(id="self"), attr=name, ctx=ast.Store()
            ):
                yield name
        yield from _set_on_self(ast.iter_child_nodes(node))


# --- torch.fx --------------------------------------------------------------


@cache
def torch_modules() -> list[str]:
    """Every module of torch.fx, found by its file, without importing it."""
    (folder,) = map(Path, torch.fx.__path__)
    return sorted(
        ".".join(["torch.fx", *_module_parts(file.relative_to(folder))])
        for file in folder.rglob("*.py")
    )


def _module_parts(file: Path) -> tuple[str, ...]:
    """The dotted name of a file, in parts."""
    parts = file.with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def public_names(module: ModuleType) -> set[str]:
    """The public names of a module: `__all__`, and what it defines itself.

    For an experimental module, only the names in `__all__`.
    """
    source = Path(str(module.__file__)).read_text()  # may be empty
    defined = {
        name
        for node in ast.parse(source).body
        for name in _bound(node, with_imports=module.__name__ == "torch.fx")
        if not name.startswith("_")
    }
    listed = set(getattr(module, "__all__", ()))
    if listed and ".experimental." in module.__name__:
        defined = set()
    return {
        name
        for name in defined | listed
        if not isinstance(
            getattr(module, name, None), logging.Logger | TypeVar | ModuleType
        )
    }


def _bound(node: ast.stmt, *, with_imports: bool) -> list[str]:
    """The names that a statement at the top of a module binds."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [t.id for t in targets if isinstance(t, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case ast.ImportFrom(names=names) if with_imports:
            return [alias.asname or alias.name for alias in names]
    return []


@cache
def module_surface(name: str) -> Surface:
    """(our module, key) → the object in torch.fx, for one of its modules."""
    module = importlib.import_module(name)
    ours = name.removeprefix("torch.")
    found: Surface = {}
    for public in sorted(public_names(module)):
        value = getattr(module, public, None)
        found[ours, public] = describe(value)
        if inspect.isclass(value) and value.__module__ == name:
            for member, item in sorted(members(value, "torch.fx").items()):
                found[ours, f"{public}.{member}"] = item
    return found


def torch_surface(rows: Mapping[tuple[str, str], Row]) -> Surface:
    """All public names of torch.fx, and the private ones that have a row.

    The names inside of what `rows` says is out are left out.
    """
    found: Surface = {}
    for name in torch_modules():
        ours = name.removeprefix("torch.")
        found[ours, ""] = Item("module")
        if _is_listed(rows.get((ours, ""))):
            inside = module_surface(name)
            found |= {
                (module, key): item
                for (module, key), item in inside.items()
                if "." not in key
                or _is_listed(rows.get((module, key.partition(".")[0])))
            }
    # Of the private names, those that programs use; such rows begin by hand.
    private = (place for place in rows if "._" in f".{place[1]}")
    for module, key in set(private) - found.keys():
        item = look_up(f"torch.{module}", key)
        if item is not None:
            found[module, key] = item
    return found


def _is_listed(row: Row | None) -> bool:
    """Are the names inside this one listed too?"""
    return row is None or row.status in ("same", "differs")


# --- names that a module has because it imports them -------------------------

NOT_PASSED_ON: Final = {
    "fx._lazy_graph_module.*": "it is there for one function",
    "fx.passes.*": "a pass has its own names; others are in their own files",
    "fx.experimental.*": "a pass has its own names, and others are torch's",
}
"""What fx does not have of such names, "module.name", and why."""


def passed_on(name: str) -> set[str]:
    """The public names of torch that a module of torch.fx imports.

    Modules and type variables do not count.
    """
    module = importlib.import_module(name)
    return {
        key
        for key, value in vars(module).items()
        if not key.startswith("_")
        and not isinstance(value, ModuleType | TypeVar)
        and (home := str(getattr(value, "__module__", ""))) != name
        and home.partition(".")[0] == "torch"
    }


def passed_on_problems(
    rows: Mapping[tuple[str, str], Row],
    names: Callable[[str], set[str]] = passed_on,
) -> Iterator[str]:
    """Imported names of torch.fx that fx lacks for no reason that is given.

    And the other way round: reasons for names that there are not.
    """
    used = set()
    for module, key in rows:
        if key or not _is_listed(rows[module, key]):
            continue
        home = importlib.import_module(module)
        for name in sorted(names(f"torch.{module}")):
            full = f"{module}.{name}"
            if (module, name) in rows or hasattr(home, name):
                continue
            reasons = [o for o in NOT_PASSED_ON if fnmatchcase(full, o)]
            used |= {*reasons}
            if not reasons:
                yield (
                    f"{full}: torch.fx's file imports it, and programs may "
                    "import it from there: let fx have it, or give the reason "
                    "in NOT_PASSED_ON"
                )
    for pattern in NOT_PASSED_ON.keys() - used:
        yield f"{pattern}: NOT_PASSED_ON has it, and there is no such name"


# --- fx --------------------------------------------------------------------


def is_lent(module: ModuleType) -> bool:
    """Is this a file of torch?"""
    return not Path(str(module.__file__)).is_relative_to(ROOT / "fx")


def look_up(module: str, key: str) -> Item | None:
    """The object that fx has under a name, or None."""
    try:
        home = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if f"{module}.".startswith(f"{error.name}."):
            return None
        raise
    outer, _, inner = key.partition(".")
    if not outer:
        return Item("module", lent=is_lent(home))
    value = getattr(home, outer, None)
    twin = sys.modules.get(f"{module}{TWIN}")
    lent = outer not in vars(home)
    if lent and (twin is None or outer not in vars(twin)):
        return None
    if not inner:
        return replace(describe(value), lent=lent)
    if not inspect.isclass(value):
        return None
    return _member(value, inner)


def _member(cls: type, name: str) -> Item | None:
    """The member of this name in one of our classes or its bases, or None."""
    missing = object()
    getattr(cls, name, None)  # imported, if it was not yet
    found = inspect.getattr_static(cls, name, missing)
    if found is not missing:
        return describe(found)
    attributes = {a for base in cls.__mro__ for a in _attributes(base)}
    return Item("data") if name in attributes else None


# --- the file --------------------------------------------------------------


def load(text: str) -> dict[tuple[str, str], Row]:
    """The rows of the file.

    Raises:
        ValueError: a row has an unknown status, kind or field.
    """
    rows = {}
    for module, keys in tomllib.loads(text).items():
        for key, fields in keys.items():
            try:
                row = Row(
                    module,
                    key,
                    kind=fields.pop("kind"),
                    parameters=fields.pop("parameters", None),
                    status=fields.pop("status"),
                    reason=fields.pop("reason", ""),
                )
            except KeyError as error:
                raise ValueError(f"{module} {key}: no {error}") from None
            if fields or row.status not in get_args(Status):
                raise ValueError(f"{row.name}: {row.status} {fields}")
            rows[module, key] = row
    return rows


def dump(rows: Mapping[tuple[str, str], Row]) -> str:
    """The file's text in its standard form: a table for each module."""
    lines = [HEADER.rstrip()]
    for (module, key), row in sorted(rows.items()):
        if not key:
            lines += ["", f"[{json.dumps(module)}]"]
        fields = {
            "kind": row.kind,
            "parameters": row.parameters,
            "status": row.status,
            "reason": row.reason or None,
        }
        inside = ", ".join(
            f"{name} = {json.dumps(value, ensure_ascii=False)}"
            for name, value in fields.items()
            if value is not None
        )
        lines.append(f"{json.dumps(key)} = {{ {inside} }}")
    return "\n".join(lines) + "\n"


def updated(rows: Mapping[tuple[str, str], Row]) -> dict[tuple[str, str], Row]:
    """The rows brought up to date with torch.fx; statuses by hand kept."""
    new = dict(rows)
    while True:  # a class judged `same` brings in its members
        surface = torch_surface(new)
        judged = {
            place: _judged(new.get(place), place, item)
            for place, item in surface.items()
        }
        if judged == new:
            return new
        new = judged


def _judged(old: Row | None, place: tuple[str, str], item: Item) -> Row:
    """The row of one name: kept as it was, or derived from what fx has."""
    found = look_up(*place)
    if old is not None and _stands(old, found):
        return replace(old, kind=item.kind, parameters=item.parameters)
    status: Status = "out"
    if found:
        status = "same" if found == item else "differs"
        status = "lent" if found.lent else status
    return Row(*place, item.kind, item.parameters, status)


def _stands(old: Row, found: Item | None) -> bool:
    """Is a status that was written by hand to be kept?"""
    if old.status == "out" and found:
        return False
    if found and found.lent != (old.status == "lent"):
        return False
    return bool(old.reason) or old.status == "same"


# --- comparing -------------------------------------------------------------


def row_problems(row: Row, found: Item | None) -> Iterator[str]:
    """What is wrong with a row, given what fx has under its name."""
    if row.status != "same" and not row.reason:
        yield f"{row.name}: {row.status}, but no reason is given"
    match row.status:
        case "same" | "differs":
            yield from _own_problems(row, found)
        case "lent":
            # A torch that is older than the file may lack the module.
            had = found or f"torch.{row.module}" in torch_modules()
            if found is None and had:
                yield f"{row.name}: is to be lent, and is not found"
            elif found and not found.lent:
                yield f"{row.name}: is to be lent, yet fx has a file"
        case "out":
            if found is not None:
                yield f"{row.name}: is out, yet fx has it"


def _own_problems(row: Row, found: Item | None) -> Iterator[str]:
    """What is wrong with the row of a name that fx has itself."""
    wanted = Item(row.kind, row.parameters)
    same = row.status == "same"
    if found is None:
        end = "" if same else ", so it does not differ"
        yield f"{row.name}: fx has it not{end}"
    elif found.lent:
        yield f"{row.name}: is lent, and not a file of fx"
    elif same and found.kind != wanted.kind:
        yield f"{row.name}: a {found.kind}, not a {wanted.kind}"
    elif same and found != wanted:
        yield (
            f"{row.name}: takes {found.parameters}, "
            f"torch.fx {wanted.parameters}"
        )


def surface_problems(
    rows: Mapping[tuple[str, str], Row], surface: Surface
) -> Iterator[str]:
    """Names of torch.fx without a row, and rows without a name in torch.fx."""
    for place, item in surface.items():
        name = ".".join(filter(None, place))
        row = rows.get(place)
        if row is None:
            yield f"{name}: torch.fx has it, the file has not"
        elif (row.kind, row.parameters) != (item.kind, item.parameters):
            yield f"{name}: is a {item.kind} {item.parameters} in torch.fx"
    for place, row in rows.items():
        if place not in surface:
            yield f"{row.name}: torch.fx has it not"


def main() -> int:
    """Report on the file, or with --write bring it up to date."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--write", action="store_true", help="bring the file up to date"
    )
    write = parser.parse_args().write
    rows = load(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    if write:
        rows = updated(rows)
        FILE.write_text(dump(rows), encoding="utf-8")
    for status in get_args(Status):
        number = sum(row.status == status for row in rows.values())
        print(f"{status:8}{number:5}")
    wrong = [
        *surface_problems(rows, torch_surface(rows)),
        *(
            problem
            for (module, key), row in rows.items()
            for problem in row_problems(row, look_up(module, key))
        ),
        *passed_on_problems(rows),
    ]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
