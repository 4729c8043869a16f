"""Makes exercises/fx from fx/: the body of each exercise becomes a stub.

`python -m stages.generate` writes the files, and with `--check` only compares
those that are in git, which are the ones with stubs.  All others are copies,
which the first check of a stage lays beside them.

It also writes the checksums of fx/ to `stages/reference.sha256`, so that the
check of a stage notices if a learner has edited fx/ by mistake.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import shutil
import sys
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from pathlib import Path

from stages import functions
from stages.functions import State
from stages.manifest import EXERCISES, HERE, REFERENCE, ROOT, exercises_by_file

SUMS = HERE / "reference.sha256"

COPIED = (".py", ".html", ".css", ".js")
"""The files of a package: its code, and what the page of fx.show is made of."""


def generated(reference: Path = REFERENCE) -> dict[str, str]:
    """The exercises' files: path below fx/ -> text.

    Raises:
        ValueError: an exercise names something that cannot be stubbed.
    """
    wanted = exercises_by_file()
    files: dict[str, str] = {}
    for path in sorted(reference.rglob("*")):
        if path.suffix not in COPIED and path.name != "py.typed":
            continue
        if path.is_file() and "__pycache__" not in path.parts:
            name = path.relative_to(reference).as_posix()
            text = path.read_text(encoding="utf-8")
            ones = wanted.get(name, [])
            stubs = {one.qualname: one.stub for one in ones}
            try:
                files[name] = functions.stubbed(text, stubs) if stubs else text
            except (LookupError, ValueError) as error:
                where = f"stages/{ones[0].stage:02d}/stage.toml: fx/{name}"
                raise ValueError(f"{where}: {error}") from None
    return files


def sums(reference: Path = REFERENCE) -> str:
    """The checksums of the reference, as `sha256sum` writes them."""
    lines = []
    for path in sorted(reference.rglob("*.py")):
        # Where git ends lines as Windows does, the text is still the same.
        text = path.read_bytes().replace(b"\r\n", b"\n")
        digest = hashlib.sha256(text).hexdigest()
        name = f"fx/{path.relative_to(reference).as_posix()}"
        lines.append(f"{digest}  {name}\n")
    return "".join(lines)


def written(root: Path) -> Iterator[str]:
    """The exercises in a tree that are no longer stubs."""
    for file, found in exercises_by_file().items():
        path = root / file
        if not path.is_file():
            continue
        try:
            known = functions.functions(ast.parse(path.read_text("utf-8")))
        except (SyntaxError, UnicodeDecodeError):
            yield f"{file} (it cannot be read)"
            continue
        for one in found:
            for function in known.get(one.qualname, []):
                if functions.state(function) is not State.UNWRITTEN:
                    yield one.name


def stale(root: Path) -> Iterator[str]:
    """The files of a tree that differ from what the generator writes.

    Copies of files of fx/ may be missing, as in a fresh clone.
    """
    files, wanted = generated(), exercises_by_file()
    for name, text in files.items():
        may_be_missing = name not in wanted and not (root / name).exists()
        if not may_be_missing and not holds(root / name, text):
            yield name
    for name in _strange(root, files):
        yield f"{name} (not of the library)"


def holds(path: Path, text: str) -> bool:
    """Whether a file exists and has this text."""
    return (
        path.is_file()
        and path.read_text(encoding="utf-8", errors="replace") == text
    )


def _strange(root: Path, files: Collection[str]) -> list[str]:
    """The Python files of a folder that are not among `files`."""
    found = (path.relative_to(root) for path in sorted(root.rglob("*.py")))
    return [path.as_posix() for path in found if path.as_posix() not in files]


def new_backup(folder: Path) -> Path:
    """Make an empty folder for a backup; its name is the time, to sort by."""
    target = folder / datetime.now().strftime("%Y-%m-%d_%H-%M-%S_%f")
    target.mkdir(parents=True)
    return target


def put_aside(root: Path, names: Iterable[str], target: Path) -> None:
    """Copy files to another folder; those that do not exist are left out."""
    for name in names:
        if (root / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, target / name)


def put(path: Path, text: str) -> None:
    """Write a file, and make the folders that it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def write(root: Path) -> None:
    """Write the exercises into a folder, and the reference's checksums.

    Files to be changed or removed are backed up first, because a helper or a
    whole file that fx/ does not have may be the learner's own.
    """
    files = generated()
    changed = [name for name in files if not holds(root / name, files[name])]
    strange = _strange(root, files)
    if changed or strange:
        target = new_backup(root.parent / ".backups")
        put_aside(root, [*changed, *strange], target)
    for name in changed:
        put(root / name, files[name])
    for name in strange:
        (root / name).unlink()
    SUMS.write_text(sums(), encoding="utf-8")


def main() -> int:
    """Write the exercises, or say whether they are fresh."""
    parser = argparse.ArgumentParser(
        prog="python -m stages.generate",
        description="Make exercises/fx from fx/ (for those who work on fx).",
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing, compare"
    )
    root = EXERCISES / "fx"
    try:
        generated()
    except ValueError as error:
        print(str(error).replace(f"{ROOT}/", ""))
        return 1
    if parser.parse_args().check:
        wrong = [*stale(root)]
        if not SUMS.is_file() or SUMS.read_text("utf-8") != sums():
            wrong.append("stages/reference.sha256")
        for name in wrong:
            print(f"not as generated: {name}")
        if wrong:
            print("python -m stages.generate writes them anew")
        return bool(wrong)
    if mine := [*written(root)]:
        print(
            f"exercises/fx holds somebody's work ({', '.join(mine[:5])}): "
            f"nothing was written. `python -m stages reset all` "
            f"puts it aside."
        )
        return 1
    write(root)
    return 0


if __name__ == "__main__":
    sys.exit(main())
