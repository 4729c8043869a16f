"""What fx/ reads of torch's private names, and where it may.

    python -m tests.checks.torch_names     lists them: who needs which, and why

A name is private if a part of its dotted path begins with one underscore, as in
`torch._ops.OpOverload` and `torch.utils._pytree`.  Counted are imports, dotted
names that begin at something imported from torch, and the same by `getattr`,
`vars` and a string.  Private attributes of other objects, ruff sees (SLF001).
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from fx import torch_private
from fx.torch_private import names
from fx.torch_private.names import PrivateName
from tests.checks.sources import Source, library

ROOM = "fx/torch_private/"
"""The one folder that may look up private names of torch."""

_PRIVATE = re.compile(r"_(?!_)|__(?!.*__$)")


class Use(NamedTuple):
    """One place that reads a name."""

    line: int
    name: str


def is_private(path: str) -> bool:
    """Whether a part of a dotted path begins with one underscore."""
    return any(_PRIVATE.match(part) for part in re.split("[.:]", path))


def problems(sources: Sequence[Source]) -> Iterator[str]:
    """Private names of torch outside the room."""
    for source in sources:
        if not str(source.path).startswith(ROOM):
            for use in dotted_names(source.tree):
                yield f"{source.at(use.line)}: {use.name} is private to torch"


def dotted_names(tree: ast.Module) -> Iterator[Use]:
    """The private names of torch that a file imports or reads."""
    known = dict(_imported(tree))
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                found = [alias.name for alias in aliases]
            case ast.ImportFrom(level=0, module=str() as base, names=aliases):
                found = [f"{base}.{alias.name}" for alias in aliases]
            case ast.Attribute():
                found = [_dotted(node, known)]
            case ast.Call(args=[*args]):
                found = [*_by_string(args, known)]
            case ast.Subscript(
                value=ast.Call(args=[holder]), slice=ast.Constant(str() as name)
            ):  # vars(torch)["_C"]
                found = [f"{_dotted(holder, known)}.{name}"]
            case _:
                continue
        for path in found:
            if path.partition(".")[0] == "torch" and is_private(path):
                yield Use(node.lineno, path)


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The names that a file imports, each with its dotted path."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                for alias in aliases:
                    if alias.asname:
                        yield alias.asname, alias.name
                    else:
                        top = alias.name.partition(".")[0]
                        yield top, top
            case ast.ImportFrom(level=0, module=str() as base, names=aliases):
                for alias in aliases:
                    yield alias.asname or alias.name, f"{base}.{alias.name}"


def _dotted(node: ast.expr, known: Mapping[str, str]) -> str:
    """The path of an expression below an import; empty if it is none."""
    match node:
        case ast.Name(name):
            return known.get(name, "")
        case ast.Attribute(value=value, attr=attr):
            base = _dotted(value, known)
            return base and f"{base}.{attr}"
    return ""


def _by_string(args: list[ast.expr], known: Mapping[str, str]) -> Iterator[str]:
    """The paths that a call is given: `getattr(torch, "_C")`, `"torch._C"`."""
    match args:
        case [holder, ast.Constant(str() as name), *_]:
            if base := _dotted(holder, known):
                yield f"{base}.{name}"
        case [holder, ast.JoinedStr(values=[ast.Constant(str() as head), *_])]:
            if base := _dotted(holder, known):
                yield f"{base}.{head}"
        case [ast.Constant(str() as path), *_]:
            if re.fullmatch(r"torch(\.\w+)*:?(\.?\w+)+", path):
                yield path.replace(":", ".")


def looked_up() -> list[PrivateName]:
    """What all files of the room look up."""
    for module in pkgutil.iter_modules(torch_private.__path__):
        importlib.import_module(f"{torch_private.__name__}.{module.name}")
    return names.LOOKED_UP


if __name__ == "__main__":
    for one in looked_up():
        print(one.path, one.since, one.what, sep=" | ")
    sys.exit(any([*map(print, problems(library()))]))
