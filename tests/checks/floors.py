"""The imports between the stages of fx/, and copies of the first k stages."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from tests.checks.sources import Source, is_docstring

NO_STAGE = frozenset(
    {
        "fx/__init__.py",
        "fx/experimental/__init__.py",
        "fx/passes/__init__.py",
        "fx/passes/dialect/__init__.py",
        "fx/passes/dialect/common/__init__.py",
        "fx/passes/infra/__init__.py",
        "fx/passes/utils/__init__.py",
    }
)
"""Files without a stage: the public names, and empty packages."""

FRONT = "fx/__init__.py"
"""The one file that may import every stage."""

OF_ALL_STAGES = "fx/torch_private"
"""The one room whose files are each of the stage that needs it."""

LARGEST_CIRCLE = 4
"""How many files of one stage may import each other in a circle, for types."""

_DYNAMIC = frozenset({"__import__", "import_module"})
"""Functions that import the module that a string names."""


class Import(NamedTuple):
    """One import of a module: its line, the module, and its form."""

    line: int
    module: str
    relative: bool
    for_types: bool = False


def imports(source: Source, modules: frozenset[str]) -> Iterator[Import]:
    """Every import in a file, also those in functions and by string.

    Args:
        source: the file.
        modules: all modules of the tree, to tell `from . import node` (the
            module) from `from . import Node` (a name of the package).
    """
    for_types = {
        inner
        for node in ast.walk(source.tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for part in node.body
        for inner in ast.walk(part)
    }
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
                    yield Import(
                        node.lineno, found, level > 0, node in for_types
                    )
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
    """Imports of later stages, of the package root, or of missing modules."""
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
    elif target.is_pass and not source.is_pass:
        yield f"imports {found.module}: only a pass imports a pass"
    elif not source.is_pass and (target.stage or 0) > (source.stage or 0):
        yield (
            f"stage {source.stage or 0:02d} imports {found.module} of stage "
            f"{target.stage:02d}"
        )


def circle_problems(sources: Sequence[Source]) -> Iterator[str]:
    """Import circles at run time, and large ones among imports for types."""
    by_module = {source.module: source for source in sources}
    modules = frozenset(by_module)
    run: dict[str, set[str]] = {}
    types: dict[str, set[str]] = {}
    for source in sources:
        if str(source.path) != FRONT:
            found = [*imports(source, modules)]
            known = {one.module for one in found if one.module in modules}
            early = {one.module for one in found if not one.for_types}
            types[source.module] = known
            run[source.module] = known & early
    try:
        TopologicalSorter(run).prepare()
    except CycleError as error:
        yield f"a circle of imports: {' -> '.join(error.args[1])}"
    for circle in _circles(types):
        of = {by_module[module].stage for module in circle}
        if len(circle) > LARGEST_CIRCLE or len(of) > 1:
            yield f"{len(circle)} files in a circle: {', '.join(circle)}"


def _circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """The groups of files that all import each other, also indirectly."""
    reach = {module: set(known) for module, known in graph.items()}
    grown = True
    while grown:
        grown = False
        for known in reach.values():
            more = set().union(*(reach.get(one, set()) for one in known))
            grown |= not more <= known
            known |= more
    groups = {
        tuple(sorted(m for m in known if module in reach.get(m, ())))
        for module, known in reach.items()
        if module in known
    }
    return [list(group) for group in sorted(groups)]


def stage_problems(sources: Sequence[Source]) -> Iterator[str]:
    """Files without a stage, stages with two names, and missing stages."""
    names: dict[int, tuple[str, Source]] = {}
    for source in sources:
        if source.is_init:
            yield from _init_problems(source)
        if str(source.path) in NO_STAGE or source.is_pass:
            continue
        if source.heading is None:
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
    """A package's `__init__.py` that contains more than a docstring."""
    if str(source.path) in NO_STAGE and source.heading is not None:
        yield f"{source.path}: has a stage, though it is listed without"
    if str(source.path) != FRONT:
        for node in source.tree.body:
            if not is_docstring(node):
                yield f"{source.at(node)}: may hold a docstring alone"


def room_problems(sources: Sequence[Source]) -> Iterator[str]:
    """Files that are not of the stage that their package's docstring says."""
    rooms = {
        source.path.parent: source
        for source in sources
        if source.is_init
        and str(source.path) not in NO_STAGE
        and str(source.path.parent) != OF_ALL_STAGES
    }
    for source in sources:
        room = rooms.get(source.path.parent)
        if room is not None and source.heading != room.heading:
            yield f"{source.path}: not of the stage that {room.path} says"


def write_stage(sources: Sequence[Source], stage: int, root: Path) -> list[str]:
    """Add the files of one stage to the tree under `root`.

    The packages around them get an empty `__init__.py`, so that `root`
    contains only the files of the stages written so far.

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
    """The packages that contain a file: fx, fx/passes for fx/passes/x.py."""
    return [folder for folder in path.parents if folder.parts]


def write_prefix(sources: Sequence[Source], last: int, root: Path) -> list[str]:
    """Write the stages 01 to `last` under `root`; returns their modules."""
    shutil.rmtree(root, ignore_errors=True)
    return [
        module
        for stage in range(1, last + 1)
        for module in write_stage(sources, stage, root)
    ]
