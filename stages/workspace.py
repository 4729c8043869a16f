"""Lays out, backs up and resets the learner's files.

A file is copied to `exercises/.backups` before anything here overwrites it.
`exercises/.base` holds the stubs, and the copies as they were laid, so that
one can tell the learner's changes from ours.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from stages import functions
from stages.generate import (
    SUMS,
    generated,
    holds,
    new_backup,
    put,
    put_aside,
    sums,
)
from stages.manifest import (
    EXERCISES,
    REFERENCE,
    ROOT,
    Exercise,
    exercises_by_file,
    stages,
)
from stages.tree import Tree


class Workspace(NamedTuple):
    """The folders of one learner.

    Attributes:
        folder: the folder of `fx`, the backups and the base.
        reference: the library that the exercises are made from.
    """

    folder: Path = EXERCISES
    reference: Path = REFERENCE

    @property
    def tree(self) -> Path:
        """The learner's fx."""
        return self.folder / "fx"

    @property
    def base(self) -> Path:
        """The stubs that the learner began with."""
        return self.folder / ".base"

    @property
    def backups(self) -> Path:
        """The folder of the backups."""
        return self.folder / ".backups"


def lay_out(work: Workspace | None = None) -> None:
    """Make the learner's fx whole, and remember the stubs of today.

    In git are only the files that somebody writes in.  All others are copies
    of files of fx/, and are laid beside them here.  Of a newer version of the
    project, a copy is exchanged; but one that the learner has changed stays.
    """
    work = work or Workspace()
    fresh, own = generated(work.reference), exercises_by_file()
    for name in own:
        if not holds(work.base / name, fresh[name]):
            put(work.base / name, fresh[name])
    if work.tree.is_dir():
        for name in sorted({*fresh, *_files_below(work.base)} - own.keys()):
            _lay(work, name, fresh.get(name))
        _drop_empty(work.tree)


def _drop_empty(folder: Path) -> None:
    """Remove the folders in which there is no file, apart from bytecode."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and path.name != "__pycache__":
            left = [p for p in path.iterdir() if p.name != "__pycache__"]
            if not left:
                shutil.rmtree(path, ignore_errors=True)


def _lay(work: Workspace, name: str, text: str | None) -> None:
    """Write a copy, or remove it; but one that was changed stays."""
    mine, base = work.tree / name, work.base / name
    if mine.is_file() and (text is None or not holds(mine, text)):
        is_as_laid = base.is_file() and holds(mine, base.read_text("utf-8"))
        if not is_as_laid:
            return
    for path in (mine, base):
        if text is None:
            path.unlink(missing_ok=True)
        elif not holds(path, text):
            put(path, text)


def _files_below(folder: Path) -> set[str]:
    """The Python files and others of a folder, as paths below it."""
    found = (p for p in folder.rglob("*") if p.suffix != ".pyc")
    return {p.relative_to(folder).as_posix() for p in found if p.is_file()}


def edited_reference(reference: Path = REFERENCE) -> list[str]:
    """A paragraph if fx/ is not as it was delivered."""
    if not SUMS.is_file():
        return []
    before = set(SUMS.read_text(encoding="utf-8").splitlines())
    now = set(sums(reference).splitlines())
    changed = sorted({line.split("  ")[1] for line in before ^ now})
    if not changed:
        return []
    return [
        f"{', '.join(changed)}: not as delivered. fx/ is the reference, and "
        f"nothing in it is checked here: your work belongs in "
        f"exercises/{changed[0]}.\n"
        f"    git diff fx                 what was changed\n"
        f"    git checkout fx             undo it (copy your lines first)\n"
        f"If you are working on the library itself: "
        f"python -m stages.generate, or pytest stages/… --reference."
    ]


# --- what is remembered ----------------------------------------------------


def note_checked(folder: Path, number: int) -> None:
    """Remember which stage was checked last."""
    (folder / ".checked").write_text(f"{number}\n", encoding="utf-8")


def stage_checked(work: Workspace) -> int:
    """The stage that was checked last; 0 if none was."""
    path = work.folder / ".checked"
    return int(path.read_text(encoding="utf-8")) if path.is_file() else 0


def note(tree: Tree, number: int, word: str) -> None:
    """Remember that a stage is "done" or "sealed" with its functions of now."""
    tell(tree, f"{word}:{_key(tree, number)}")


def is_noted(tree: Tree, number: int, word: str) -> bool:
    """Whether a stage was "done" or "sealed" with the functions of now.

    What the learner has changed elsewhere since does not count.
    """
    return is_told(tree, f"{word}:{_key(tree, number)}")


def tell(tree: Tree, what: str) -> None:
    """Remember a line about the learner's work."""
    if not is_told(tree, what):
        with (tree.root.parent / ".done").open("a", encoding="utf-8") as file:
            file.write(f"{what}\n")


def is_told(tree: Tree, what: str) -> bool:
    """Whether a line about the learner's work is remembered."""
    path = tree.root.parent / ".done"
    return (
        path.is_file() and what in path.read_text(encoding="utf-8").splitlines()
    )


def _key(tree: Tree, number: int) -> str:
    """A hash of the functions of a stage."""
    digest = hashlib.sha256()
    for one in stages()[number].exercises:
        digest.update(ast.dump(tree.function(one)).encode())
    return f"{number:02d}:{digest.hexdigest()}"


# --- backups ---------------------------------------------------------------


def back_up(work: Workspace, files: Iterable[str]) -> str:
    """Copy files of the tree to a new folder of backups, and give its name."""
    target = new_backup(work.backups)
    put_aside(work.tree, files, target)
    return target.relative_to(work.folder).as_posix()


def restore(work: Workspace, name: str | None = None) -> list[str]:
    """Restore the files of a backup, after backing up those of today.

    Args:
        work: the learner's folders.
        name: the backup; by default, the newest.

    Returns:
        The files that were restored.

    Raises:
        LookupError: there is no such backup.
    """
    known = backups(work)
    if not known or (name is not None and name not in known):
        there = ", ".join(known) or "none"
        raise LookupError(f"no backup {name or ''}; there are: {there}")
    source = work.backups / (name or known[-1])
    files = sorted(_files_below(source))
    back_up(work, files)
    put_aside(source, files, work.tree)
    return files


def backups(work: Workspace) -> list[str]:
    """The names of the backups, oldest first."""
    return sorted(path.name for path in work.backups.glob("*"))


# --- reset -----------------------------------------------------------------


def reset_files(work: Workspace, files: Iterable[str]) -> str:
    """Restore whole files as they were delivered.

    Returns:
        The backup, as a path from the learner's folder.
    """
    fresh = generated(work.reference)
    names = [*files]
    kept = back_up(work, names)
    for name in names:
        put(work.tree / name, fresh[name])
    return kept


def reset_functions(work: Workspace, wanted: Iterable[Exercise]) -> str:
    """Replace some functions by their stubs, and change nothing else.

    Returns:
        The backup, as a path from the learner's folder.

    Raises:
        LookupError, SyntaxError: a function cannot be found in the learner's
            file, so that only the whole file can be reset.
    """
    ones = [*wanted]
    fresh = generated(work.reference)
    texts: dict[str, str] = {}
    for one in ones:
        path = work.tree / one.file
        text = texts.get(one.file) or _read(path)
        stub = functions.source_of(fresh[one.file], one.qualname)
        texts[one.file] = functions.with_source(text, one.qualname, stub)
    for text in texts.values():
        ast.parse(text)  # fails for a file that is indented with tabs
    kept = back_up(work, texts)
    for file, text in texts.items():
        (work.tree / file).write_text(text, encoding="utf-8")
    return kept


def _read(path: Path) -> str:
    """The text of a learner's file.

    Raises:
        RuntimeError: it is not text.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise RuntimeError(f"{path} is not UTF-8: {error}") from None


def against_reference(work: Workspace, one: Exercise) -> Iterator[str]:
    """A unified diff from the learner's function to the reference's.

    Raises:
        LookupError, SyntaxError: the learner's file has no such function.
    """
    mine = _read(work.tree / one.file)
    theirs = (work.reference / one.file).read_text(encoding="utf-8")
    yield from difflib.unified_diff(
        functions.source_of(mine, one.qualname).splitlines(),
        functions.source_of(theirs, one.qualname).splitlines(),
        "yours",
        "reference",
        lineterm="",
    )


# --- a clone that was copied or moved --------------------------------------

CURE = (
    "Make .venv anew in this folder:\n"
    "    rm -rf .venv && python3 -m venv .venv\n"
    "    .venv/bin/pip install -e '.[course]'    (or `make tour`)\n"
    "    source .venv/bin/activate"
)
"""What to do about it."""


def moved(here: Path, root: Path = ROOT) -> str:
    """A paragraph if the Python that runs is that of another clone.

    `.venv` has absolute paths in it, of the clone whose `fx` and `stages` it
    imports.  After a copy, its `pytest` would check the work in the folder
    that was copied.

    Args:
        here: the folder in which the command was given.
        root: the clone that is imported.

    Returns:
        The paragraph, or "".
    """
    here = here.resolve()
    for folder in (here, *here.parents):
        if folder != root and (folder / "stages" / "plugin.py").is_file():
            return (
                f"You are in {folder}, but the Python that runs ({sys.prefix}) "
                f"has fx and stages of {root}, and would check the work there. "
                f"Was this folder copied or moved? {CURE}"
            )
        if folder == root:
            break
    return ""


if __name__ == "__main__":
    lay_out()
