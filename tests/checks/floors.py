"""Who imports whom in fx/, and the trees of the stages 01 to k alone."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from tests.checks.sources import Source, is_docstring

NO_STAGE = frozenset(
    {
        "fx/__init__.py",
        "fx/experimental/__init__.py",
        "fx/passes/__init__.py",
        "fx/passes/utils/__init__.py",
    }
)
"""Files without a stage: the public names, and packages that hold nothing."""

FRONT = "fx/__init__.py"
"""The one file that may import every stage."""

_DYNAMIC = frozenset({"__import__", "import_module"})
"""Functions that import what a string names."""


class Import(NamedTuple):
    """One import of a module: where, what, and how it was written."""

    line: int
    module: str
    relative: bool


def imports(source: Source, modules: frozenset[str]) -> Iterator[Import]:
    """Every import in a file: top, functions, TYPE_CHECKING, by string.

    Args:
        source: the file.
        modules: all modules of the tree, to tell `from . import node` (the
            module) from `from . import Node` (a name of the package).
    """
    for node in ast.walk(source.tree):
        match node:
            case ast.Import(names=names):
                for name in names:
                    yield Import(node.lineno, name.name, relative=False)
            case ast.ImportFrom(level=level, names=names):
                base = _base(source, node)
                for name in names:
                    inner = f"{base}.{name.name}"
                    found = inner if inner in modules else base
                    yield Import(node.lineno, found, relative=level > 0)
            case ast.Call(func=func, args=[ast.Constant(str() as text), *_]):
                if ast.unparse(func).rpartition(".")[2] in _DYNAMIC:
                    yield Import(node.lineno, text, relative=False)


def _base(source: Source, node: ast.ImportFrom) -> str:
    """The absolute name of `X` in `from X import …`."""
    if not node.level:
        return node.module or ""
    package = source.module.split(".")
    up = node.level - source.is_init
    kept = package[: len(package) - up]
    return ".".join([*kept, node.module] if node.module else kept)


def import_problems(sources: Sequence[Source]) -> Iterator[str]:
    """Imports that go up, through the package root, or nowhere."""
    by_module = {source.module: source for source in sources}
    modules = frozenset(by_module)
    for source in sources:
        if str(source.path) == FRONT:
            continue
        for found in imports(source, modules):
            if found.module.partition(".")[0] == "fx":
                for fault in _faults(source, found, by_module):
                    yield f"{source.at(found.line)}: {fault}"


def _faults(
    source: Source, found: Import, by_module: dict[str, Source]
) -> Iterator[str]:
    """What is wrong with one import of something in fx."""
    if not found.relative:
        yield f"imports {found.module} by its absolute name: use a dot"
    if found.module == "fx":
        yield "imports the package root: name the module instead"
        return
    target = by_module.get(found.module)
    if target is None:
        yield f"imports {found.module}, which is not there"
    elif (target.stage or 0) > (source.stage or 0):
        yield (
            f"stage {source.stage or 0:02d} imports {found.module} of stage "
            f"{target.stage:02d}"
        )


def stage_problems(sources: Sequence[Source]) -> Iterator[str]:
    """Files without a stage, and stages with two names or none."""
    names: dict[int, tuple[str, Source]] = {}
    for source in sources:
        if str(source.path) in NO_STAGE:
            yield from _init_problems(source)
        elif source.heading is None:
            yield (
                f'{source.path}: the docstring does not begin "Stage NN, '
                'name: " (01 to 08)'
            )
        else:
            number, name = source.heading
            first_name, first = names.setdefault(number, (name, source))
            if name != first_name:
                yield (
                    f"{source.path}: stage {number:02d} is {name!r} here and "
                    f"{first_name!r} in {first.path}"
                )
    missing = sorted(set(range(1, max(names, default=1))) - set(names))
    if missing:
        yield f"no file is of stage {missing}"


def _init_problems(source: Source) -> Iterator[str]:
    """A package's `__init__.py` without a stage must hold nothing."""
    if source.heading is not None:
        yield f"{source.path}: has a stage, though it is listed without"
    if str(source.path) != FRONT:
        for node in source.tree.body:
            if not is_docstring(node):
                yield f"{source.at(node)}: may hold a docstring alone"


def write_stage(sources: Sequence[Source], stage: int, root: Path) -> list[str]:
    """Add the files of one stage to the tree under `root`.

    The packages around them get an empty `__init__.py`, so what is imported
    from `root` is the files of the stages written so far and nothing else.

    Returns:
        The dotted names of the modules added.
    """
    added = [source for source in sources if source.stage == stage]
    for source in added:
        file = root / source.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source.text, encoding="utf-8")
        for package in _packages(source.path):
            (root / package / "__init__.py").touch()
    return [source.module for source in added]


def _packages(path: PurePosixPath) -> list[PurePosixPath]:
    """The packages a file lies in: fx and fx/passes for fx/passes/x.py."""
    return [folder for folder in path.parents if folder.parts]


def write_prefix(sources: Sequence[Source], last: int, root: Path) -> list[str]:
    """Write the stages 01 to `last` under `root`; the modules' names."""
    shutil.rmtree(root, ignore_errors=True)
    return [
        module
        for stage in range(1, last + 1)
        for module in write_stage(sources, stage, root)
    ]
