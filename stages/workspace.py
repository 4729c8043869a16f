"""Backs up, resets and updates the learner's files.

A file is copied to `exercises/.backups` before anything here overwrites it.
`exercises/.base` holds the stubs that the learner began with, so that an
update can tell the learner's changes from ours.
"""

from __future__ import annotations

import ast
import difflib
import os
import shutil
import subprocess
import tempfile
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
from stages.manifest import EXERCISES, REFERENCE, Exercise, exercises_by_file


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
    """Make the learner's fx whole, and remember the stubs it began with.

    In git are only the files that somebody writes in.  All others are copies
    of files of fx/, and are laid beside them here.  Of a newer version of the
    project, a copy is exchanged; but one that the learner has changed stays,
    until an update merges it.
    """
    work = work or Workspace()
    fresh = generated(work.reference)
    _remember_base(work, fresh)
    if work.tree.is_dir():
        names = {*fresh, *_files_below(work.base)}
        for name in sorted(names - exercises_by_file().keys()):
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
    is_as_laid = base.is_file() and holds(mine, base.read_text("utf-8"))
    if mine.is_file() and not is_as_laid:
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


def _remember_base(work: Workspace, stubs: dict[str, str]) -> None:
    """Save the stubs of today as the base, unless there is a base already."""
    if not work.base.is_dir():
        _write_base(work, stubs)


def _write_base(work: Workspace, files: dict[str, str]) -> None:
    """Replace the stubs in the base by others."""
    fresh = work.folder / ".base.new" / str(os.getpid())
    shutil.rmtree(fresh, ignore_errors=True)
    for name, text in files.items():
        put(fresh / name, text)
    shutil.rmtree(work.base, ignore_errors=True)
    fresh.rename(work.base)


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


# --- where the learner works -------------------------------------------------


def note_checked(folder: Path, number: int) -> None:
    """Remember which stage was checked last."""
    (folder / ".checked").write_text(f"{number}\n", encoding="utf-8")


def stage_at_work(work: Workspace) -> int | None:
    """The stage that the learner wrote an exercise of last, or checked last.

    A file counts if a stub in it is gone: a newer version of the project
    changes other files, too.

    Returns:
        Its number, or None if nothing has been written or checked.
    """
    times: list[tuple[int, int]] = []
    for file, ones in exercises_by_file().items():
        mine = work.tree / file
        text = mine.read_bytes() if mine.is_file() else b""
        if text and not all(f'"{one.stub}"'.encode() in text for one in ones):
            times.append((mine.stat().st_mtime_ns, ones[0].stage))
    checked = work.folder / ".checked"
    if checked.is_file():
        number = int(checked.read_text(encoding="utf-8"))
        times.append((checked.stat().st_mtime_ns, number))
    return max(times)[1] if times else None


# --- backups ---------------------------------------------------------------


def back_up(work: Workspace, files: Iterable[str]) -> Path:
    """Copy files of the tree, and their base, to a new folder of backups."""
    names = [*files]
    target = new_backup(work.backups)
    put_aside(work.tree, names, target)
    # If an update is undone, its base must be too, to make another possible.
    put_aside(work.base, names, target / ".base")
    return target


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
    known = [*backups(work)]
    if not known or (name is not None and name not in known):
        there = ", ".join(known) or "none"
        raise LookupError(f"no backup {name or ''}; there are: {there}")
    source = work.backups / (name or known[-1])
    files = [
        path.relative_to(source).as_posix()
        for path in sorted(source.rglob("*"))
        if path.is_file() and not path.is_relative_to(source / ".base")
    ]
    back_up(work, files)
    put_aside(source, files, work.tree)
    put_aside(source / ".base", files, work.base)
    return files


def backups(work: Workspace) -> Iterator[str]:
    """The names of the backups, oldest first."""
    if work.backups.is_dir():
        yield from sorted(path.name for path in work.backups.iterdir())


def restore_function(
    work: Workspace, one: Exercise, name: str | None = None
) -> Path:
    """Restore one function from a backup, and change nothing else.

    Args:
        work: the learner's folders.
        one: the exercise.
        name: the backup; by default, the newest with another version of it.

    Returns:
        The folder of the backup that it came from.

    Raises:
        LookupError: no backup has another version of the function.
        SyntaxError: the learner's file cannot be read.
    """
    path = work.tree / one.file
    text = _read(path)
    mine = functions.source_of(text, one.qualname)
    for known in [name] if name else reversed([*backups(work)]):
        old = work.backups / known / one.file
        if not old.is_file():
            continue
        theirs = functions.source_of(_read(old), one.qualname)
        if theirs != mine:
            back_up(work, [one.file])
            new = functions.with_source(text, one.qualname, theirs)
            path.write_text(new, encoding="utf-8")
            return old
    raise LookupError(
        f"no backup has another version of {one.qualname}; there are: "
        f"{', '.join(backups(work)) or 'none'}"
    )


# --- reset -----------------------------------------------------------------


def reset_files(work: Workspace, files: Iterable[str]) -> Path:
    """Restore whole files as they were delivered.

    Returns:
        The folder of the backup.
    """
    fresh = generated(work.reference)
    names = [*files]
    kept = back_up(work, names)
    for name in names:
        put(work.tree / name, fresh[name])
    return kept


def reset_functions(work: Workspace, wanted: Iterable[Exercise]) -> Path:
    """Replace some functions by their stubs, and change nothing else.

    Returns:
        The folder of the backup.

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


# --- update ----------------------------------------------------------------


class Update(NamedTuple):
    """The result of an update.

    Attributes:
        changed: the files that were updated.
        conflicts: the files in which both sides changed the same lines, with
            the line at which each conflict begins.
        backup: the folder of the backup, if any file was changed.
    """

    changed: list[str]
    conflicts: dict[str, list[int]]
    backup: Path | None


def update(work: Workspace) -> Update:
    """Merge a newer reference into the learner's files.

    Each file is a three-way merge of the learner's version and the stubs of
    today, based on the stubs that the learner began with.  Where both sides
    changed the same lines, the file gets both, between git's conflict
    markers.  The files are backed up first.

    Raises:
        RuntimeError: git cannot merge, or a file still has the conflict
            markers of an earlier merge.
    """
    fresh = generated(work.reference)
    _remember_base(work, fresh)
    old = _files_below(work.base)
    merged: dict[str, str] = {}
    conflicts: dict[str, list[int]] = {}
    for name in sorted({*fresh, *old}):
        text = _merged(work, name, fresh.get(name))
        if text is not None:
            merged[name] = text
            if marks := _marks(text):
                conflicts[name] = marks
    kept = back_up(work, merged) if merged else None
    for name, text in merged.items():
        put(work.tree / name, text)
    _write_base(work, fresh)
    return Update([*merged], conflicts, kept)


def _merged(work: Workspace, name: str, fresh: str | None) -> str | None:
    """A file's text after the merge, or None if it stays as it is."""
    mine, base = work.tree / name, work.base / name
    if fresh is None:  # the library has dropped the file; the learner keeps it
        return None
    if not mine.is_file():
        return fresh
    now = _read(mine)
    if marks := _marks(now):
        raise RuntimeError(
            f"{mine}:{marks[0]} has conflict markers of an earlier merge. Keep "
            f"the lines you want, remove the others and the markers, and "
            f"update again. Nothing has been changed now."
        )
    before = base.read_text(encoding="utf-8") if base.is_file() else ""
    if fresh in (now, before):
        return None
    if now == before:
        return fresh
    both = _merge(now, before, fresh)
    return None if both == now else both


def _merge(mine: str, base: str, fresh: str) -> str:
    """Three texts merged by git."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, text in (("yours", mine), ("base", base), ("new", fresh)):
            path = Path(folder, name)
            path.write_text(text, encoding="utf-8")
            paths.append(str(path))
        labels = ["-L", "yours", "-L", "where you began", "-L", "new"]
        run = subprocess.run(
            ["git", "merge-file", "-p", *labels, *paths],
            capture_output=True,
            text=True,
            check=False,
            encoding="utf-8",
        )
    if run.returncode < 0 or run.returncode > 127:
        raise RuntimeError(f"git could not merge: {run.stderr}")
    return run.stdout


def _marks(text: str) -> list[int]:
    """The lines at which conflicts begin."""
    return [
        number
        for number, line in enumerate(text.splitlines(), 1)
        if line.startswith("<<<<<<< ")
    ]


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


if __name__ == "__main__":
    lay_out()
