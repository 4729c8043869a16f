"""Imports the `fx` under test, and borrows its unwritten functions.

`exercises/fx` holds the learner's code.  While one stage is under test, a
function of another stage that is still a stub is borrowed from the reference,
so that all of fx works however little of it is written.  The stub is replaced
in memory, after the file has been read and before it is compiled:

- the learner's functions keep their file and lines, in errors and debuggers;
- a borrowed function shows the file and lines of the reference;
- no `.pyc` is read or written, so that a later run cannot pick up a borrowed
  function by mistake.
"""

from __future__ import annotations

import ast
import builtins
import dis
import importlib
import sys
import traceback
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.resources.readers import FileReader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final, NamedTuple

from stages import functions
from stages.functions import State
from stages.manifest import (
    REFERENCE,
    Exercise,
    Piece,
    exercises,
    exercises_by_file,
    pieces,
)

_compiled: Final[dict[tuple[str, str, frozenset[str]], CodeType]] = {}
"""Code compiled in this process, by path, text and borrowed functions."""


class Broken(Exception):
    """The tree cannot be imported; the message is for the learner."""


class Missing(Broken):
    """A file of the tree does not have the function of an exercise."""


class Tree(NamedTuple):
    """A folder that is to be imported as `fx`.

    Attributes:
        root: the folder.
        under_test: the stages in which nothing is borrowed.
        borrowed: names of exercises that are borrowed though written.
        texts: texts that replace files of the folder, by their path below
            it; mutants are made this way.
        reference: where functions are borrowed from.
    """

    root: Path
    under_test: Collection[int] = ()
    borrowed: Collection[str] = ()
    texts: Mapping[str, str] | None = None
    reference: Path = REFERENCE

    @property
    def is_reference(self) -> bool:
        """Whether the folder is the library itself."""
        return self.root == self.reference

    def text(self, file: str) -> str:
        """The source of a file of the tree.

        Raises:
            Broken: it is missing, or is not text.
        """
        if self.texts and file in self.texts:
            return self.texts[file]
        try:
            # Some editors begin a file with a byte order mark.
            return (self.root / file).read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            raise Broken(
                f"{self.shown(file)} is missing. Was it deleted or renamed? "
                f"To restore it as it was delivered:\n"
                f"    python -m stages reset {file}"
            ) from None
        except UnicodeDecodeError as error:
            raise Broken(f"{self.shown(file)} is not UTF-8: {error}") from None
        except OSError as error:
            raise Broken(f"{self.shown(file)}: {error}") from None

    def parsed(self, file: str) -> ast.Module:
        """The syntax tree of a file.

        Raises:
            Broken: it is missing, or has a syntax error.
        """
        text = self.text(file)
        try:
            return _parse(text, str(self.root / file))
        except SyntaxError as error:
            raise Broken(_syntax_error(self.shown(file), error)) from None

    @property
    def name(self) -> str:
        """The folder as the learner knows it: `exercises/fx`, or `fx`."""
        if self.is_reference:
            return self.root.name
        return f"{self.root.parent.name}/{self.root.name}"

    def shown(self, file: str) -> str:
        """A file's name as the learner knows it: `exercises/fx/node.py`."""
        return f"{self.name}/{file}"

    def frames(self, error: BaseException) -> list[traceback.FrameSummary]:
        """The frames of an error's traceback in this tree, files as `shown`."""
        return [
            traceback.FrameSummary(
                self.shown(
                    Path(frame.filename).relative_to(self.root).as_posix()
                ),
                frame.lineno,
                frame.name,
                line=frame.line,
            )
            for frame in traceback.extract_tb(error.__traceback__)
            if Path(frame.filename).is_relative_to(self.root)
        ]

    def file(self, frame: traceback.FrameSummary) -> str:
        """The file of a frame that `frames` gave, below the folder."""
        return frame.filename.removeprefix(f"{self.name}/")

    def function(self, one: Exercise) -> functions.Function:
        """The learner's version of an exercise.

        Raises:
            Broken: its file cannot be parsed, or has no such function.
        """
        try:
            return functions.function(self.parsed(one.file), one.qualname)
        except LookupError as error:
            raise Missing(
                f"{self.shown(one.file)} must have one function "
                f"{one.qualname} (stage {one.stage:02d}), but {error}. "
                f"To restore it as it was delivered:\n"
                f"    python -m stages reset {one.name}"
            ) from None

    def states(self) -> dict[str, State]:
        """The state of each exercise, by name."""
        return {name: self._state(one) for name, one in exercises().items()}

    def _state(self, one: Exercise) -> State:
        """The state of an exercise."""
        try:
            return functions.state(self.function(one))
        except Broken:
            return State.BROKEN

    def is_written(self, piece: Piece) -> bool:
        """Whether all functions of a piece are written."""
        return all(
            functions.state(self.function(one)) is State.WRITTEN
            for one in piece.functions
        )

    def borrows(self, one: Exercise) -> bool:
        """Whether a function is borrowed from the reference."""
        if self.is_reference:
            return False
        if one.name in self.borrowed:
            return True
        # A piece is borrowed whole: its functions may be designed together.
        return one.stage not in self.under_test and not self.is_written(
            pieces()[one.name]
        )


def problems(tree: Tree) -> Iterator[str]:
    """What is wrong with a tree, found without running it, a paragraph each."""
    if tree.is_reference:
        return
    if not tree.root.is_dir():
        yield (
            f"{tree.name} is missing. To restore it as it was delivered:\n"
            f"    python -m stages reset all"
        )
        return
    for file in _files(tree.reference):
        try:
            tree.parsed(file)
        except Broken as error:
            yield str(error)
    for one in exercises().values():
        try:
            yield from _signature_problems(tree, one)
        except Missing as error:
            yield str(error)
        except Broken:
            pass  # the file cannot be read, which was reported above, once


def _signature_problems(tree: Tree, one: Exercise) -> Iterator[str]:
    """A paragraph if the learner has changed the signature of a function."""
    yours = tree.function(one)
    wanted = functions.signature(_reference_function(tree, one))
    if functions.signature(yours) != wanted:
        yield (
            f"{tree.shown(one.file)}:{yours.lineno}: the signature of "
            f"{one.qualname} has changed, but other code calls it as before.\n"
            f"    yours:    {functions.signature(yours)}\n"
            f"    expected: {wanted}"
        )


def _reference_function(tree: Tree, one: Exercise) -> functions.Function:
    """The reference's version of an exercise."""
    return functions.function(_given(tree, one.file), one.qualname)


def _given(tree: Tree, file: str) -> ast.Module:
    """The syntax tree of a file of the reference."""
    path = tree.reference / file
    return _parse(path.read_text(encoding="utf-8"), str(path))


@lru_cache(maxsize=256)
def _parse(text: str, path: str) -> ast.Module:
    """The syntax tree of a text, cached, and so not to be changed."""
    return ast.parse(text, path)


def reference_source(one: Exercise) -> str:
    """The library's version of an exercise, as source."""
    text = (REFERENCE / one.file).read_text(encoding="utf-8")
    return functions.source_of(text, one.qualname)


def with_version(one: Exercise, source: str, *numbers: int) -> Tree:
    """The library with another version of an exercise, to check stages with."""
    text = (REFERENCE / one.file).read_text(encoding="utf-8")
    wrong = functions.with_source(text, one.qualname, source)
    return Tree(REFERENCE, numbers, texts={one.file: wrong})


def _files(root: Path) -> list[str]:
    """The Python files below a folder, as paths from it."""
    return sorted(
        path.relative_to(root).as_posix() for path in root.rglob("*.py")
    )


def _syntax_error(shown: str, error: SyntaxError) -> str:
    """A syntax error as a paragraph."""
    line = (error.text or "").rstrip()
    hint = ""
    if line.startswith(("<<<<<<<", "=======", ">>>>>>>")):
        hint = (
            "\nThese are the conflict markers of a merge: keep the lines you "
            "want, and remove the others and the markers."
        )
    return (
        f"{shown}:{error.lineno}: syntax error: {error.msg}\n    {line}{hint}"
    )


# --- imported --------------------------------------------------------------


def install(tree: Tree) -> None:
    """Make `import fx` import the tree, from now on in this process.

    Raises:
        Broken: an `fx` is already imported.
    """
    loaded = sys.modules.get("fx")
    if loaded is not None:
        raise Broken(
            f"`fx` was imported before the check began, from "
            f"{getattr(loaded, '__file__', None) or 'an unknown place'}, so "
            f"the check would not run your own code. Something that pytest "
            f"loads early imports it: a conftest.py, a plugin given with -p, "
            f"or a start-up file of Python."
        )
    sys.meta_path.insert(0, _Finder(tree))


def import_all(tree: Tree) -> None:
    """Import the package, and every file of a stage.

    What is built with the stages is left out: nothing in a stage uses it, and
    some of it imports parts of torch that take a second.

    Raises:
        Broken: an import fails; the message says in which lines.
    """
    for file in ["__init__.py", *_files(tree.reference)]:
        name = _module_name(file)
        if file == "__init__.py" or tree.text(file).startswith('"""Stage'):
            try:
                importlib.import_module(name)
            except Broken:
                raise
            except (Exception, SystemExit) as error:
                raise Broken(_import_error(tree, file, error)) from error


def _import_error(tree: Tree, file: str, error: BaseException) -> str:
    """A paragraph about a module of the tree that cannot be imported."""
    frames = tree.frames(error)
    return "\n".join(
        [
            f"{tree.shown(file)} cannot be imported.",
            *(f"    {frame.filename}:{frame.lineno}" for frame in frames),
            f"    {type(error).__name__}: {error}",
        ]
    )


def _module_name(file: str) -> str:
    """`passes/shape_prop.py` as `fx.passes.shape_prop`."""
    parts = ["fx", *file.removesuffix(".py").split("/")]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class _Finder(MetaPathFinder):
    """Finds `fx` and its modules in a tree, and nowhere else."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """The spec of a module, if the tree has it."""
        package, *rest = fullname.split(".")
        if package != "fx":
            return None
        folder = self._tree.root.joinpath(*rest)
        if (folder / "__init__.py").is_file():
            file, places = folder / "__init__.py", [str(folder)]
        elif folder.with_suffix(".py").is_file() and rest:
            file, places = folder.with_suffix(".py"), None
        else:
            return None
        return spec_from_file_location(
            fullname,
            file,
            loader=_BorrowingLoader(self._tree, file),
            submodule_search_locations=places,
        )


class _BorrowingLoader(Loader):
    """Runs one file of a tree, after borrowing its unwritten functions."""

    def __init__(self, tree: Tree, path: Path) -> None:
        self._tree = tree
        self._path = path
        self._file = path.relative_to(tree.root).as_posix()

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Make an ordinary module."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Run the file.

        Raises:
            Broken: the file cannot be parsed, or lacks something that a
                borrowed function needs.
        """
        borrowed = self._borrowed()
        exec(self.code(borrowed), module.__dict__)
        for one, function in borrowed.items():
            _ask_for_helpers(self._tree, one, function, module)

    def get_source(self, fullname: str) -> str:
        """The text, for tracebacks."""
        return self._tree.text(self._file)

    def get_resource_reader(self, fullname: str) -> FileReader:
        """What reads the files beside the module, such as a style sheet."""
        return FileReader(SourceFileLoader(fullname, str(self._path)))

    def _borrowed(self) -> dict[Exercise, functions.Function]:
        """The borrowed exercises of this file -> the reference's functions."""
        found: dict[Exercise, functions.Function] = {}
        for one in exercises_by_file().get(self._file, []):
            if self._tree.borrows(one):
                found[one] = _reference_function(self._tree, one)
        return found

    def code(self, borrowed: dict[Exercise, functions.Function]) -> CodeType:
        """The compiled file, cached by its text for this process."""
        names = frozenset(one.qualname for one in borrowed)
        key = (str(self._path), self._tree.text(self._file), names)
        if key not in _compiled:
            _compiled[key] = self._compile(borrowed)
        return _compiled[key]

    def _compile(
        self, borrowed: dict[Exercise, functions.Function]
    ) -> CodeType:
        """Compile the file; borrowed functions get the reference's filename."""
        path, text = str(self._path), self._tree.text(self._file)
        if not borrowed:  # without a syntax tree in between: half the time
            return compile(text, path, "exec", dont_inherit=True)
        syntax = ast.parse(text, path)
        for one, function in borrowed.items():
            functions.exchange(syntax, one.qualname, function)
        code = compile(syntax, path, "exec", dont_inherit=True)
        origin = str(self._tree.reference / self._file)
        return _renamed(code, {one.qualname for one in borrowed}, origin)


LOADER: Final = _BorrowingLoader
"""What imports a tree, and reads the reference for what it borrows."""


def compile_reference() -> None:
    """Compile the library, so that forks of this process need not."""
    tree = Tree(REFERENCE)
    for file in _files(REFERENCE):
        _BorrowingLoader(tree, REFERENCE / file).code({})


def _renamed(code: CodeType, names: set[str], path: str) -> CodeType:
    """`code` with `path` as the filename of the functions of these names."""
    if code.co_qualname.replace(".<locals>.", ".") in names:
        return _all_renamed(code, path)
    inner = tuple(
        _renamed(const, names, path) if isinstance(const, CodeType) else const
        for const in code.co_consts
    )
    return code.replace(co_consts=inner)


def _all_renamed(code: CodeType, path: str) -> CodeType:
    """`code` and all code inside it, with `path` as the filename."""
    inner = tuple(
        _all_renamed(const, path) if isinstance(const, CodeType) else const
        for const in code.co_consts
    )
    return code.replace(co_filename=path, co_consts=inner)


# --- what a borrowed function needs ----------------------------------------


def _ask_for_helpers(
    tree: Tree, one: Exercise, function: functions.Function, module: ModuleType
) -> None:
    """Check that the learner's file still has what a borrowed function uses.

    Raises:
        Broken: an import or a helper is missing; the message says which.
    """
    owner = one.qualname.rpartition(".")[0]
    class_ = module.__dict__.get(owner)
    if owner and not isinstance(class_, type):
        return  # it is inside another function, whose variables it may use
    for name in sorted(_globals_of(function)):
        if name not in module.__dict__ and not hasattr(builtins, name):
            raise Broken(_missing(tree, one, name))
    theirs = {
        name.rpartition(".")[2]
        for name in functions.functions(_given(tree, one.file))
        if owner and name.startswith(f"{owner}.")
    }
    for name in sorted(_attributes_of(function) & theirs):
        if not hasattr(class_, name):
            raise Broken(_missing(tree, one, f"{owner}.{name}"))


def _missing(tree: Tree, one: Exercise, name: str) -> str:
    """A paragraph about a name that a borrowed function needs."""
    return (
        f"{tree.shown(one.file)} has no `{name}` any more. {one.qualname} "
        f"(stage {one.stage:02d}) is not written yet, and while it is "
        f"borrowed from the reference it needs `{name}`: put the import, "
        f"constant or helper back. This shows what is missing:\n"
        f"    git diff --no-index exercises/.base/{one.file} "
        f"{tree.shown(one.file)}"
    )


def _globals_of(function: functions.Function) -> set[str]:
    """The names that a function's body looks up outside of it."""
    module = ast.Module(body=[function], type_ignores=[])
    code = compile(module, "<borrowed>", "exec", dont_inherit=True)
    return set(_global_loads(code))


def _global_loads(code: CodeType) -> Iterator[str]:
    """The globals that code and the functions in it read when they run."""
    for instruction in dis.get_instructions(code):
        if instruction.opname == "LOAD_GLOBAL":
            yield str(instruction.argval)
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _global_loads(const)


def _attributes_of(function: functions.Function) -> set[str]:
    """The attributes of `self` or `cls` that a function uses."""
    return {
        part.attr
        for part in ast.walk(function)
        if isinstance(part, ast.Attribute)
        and isinstance(part.value, ast.Name)
        and part.value.id in ("self", "cls")
    }
