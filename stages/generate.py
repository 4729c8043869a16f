"""exercises/fx made from fx/: each exercise's body becomes a stub.

`python -m stages.generate` writes it, `--check` says whether it is what the
generator would write.  Beside it goes `stages/reference.sha256`, by which a
check sees that somebody edited fx/ where exercises/fx was meant.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

from stages import functions
from stages.functions import State
from stages.manifest import EXERCISES, HERE, REFERENCE, exercises_by_file

SUMS = HERE / "reference.sha256"


def generated(reference: Path = REFERENCE) -> dict[str, str]:
    """The exercises' files: path below fx/ -> text.

    Raises:
        ValueError, LookupError: an exercise names something that cannot be
            stubbed.
    """
    wanted = exercises_by_file()
    files: dict[str, str] = {}
    for path in sorted(reference.rglob("*")):
        if path.suffix not in (".py", "") and path.name != "py.typed":
            continue
        if path.is_file() and "__pycache__" not in path.parts:
            name = path.relative_to(reference).as_posix()
            text = path.read_text(encoding="utf-8")
            stubs = {one.qualname: one.stub for one in wanted.get(name, [])}
            files[name] = functions.stubbed(text, stubs) if stubs else text
    return files


def sums(reference: Path = REFERENCE) -> str:
    """The checksums of the reference, as `sha256sum` writes them."""
    lines = []
    for path in sorted(reference.rglob("*.py")):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        name = f"fx/{path.relative_to(reference).as_posix()}"
        lines.append(f"{digest}  {name}\n")
    return "".join(lines)


def written(root: Path) -> Iterator[str]:
    """The functions in a tree of exercises that somebody has written."""
    for file, found in exercises_by_file().items():
        path = root / file
        if not path.is_file():
            continue
        try:
            known = functions.functions(ast.parse(path.read_text("utf-8")))
        except SyntaxError:
            yield f"{file} (it has a syntax error)"
            continue
        for one in found:
            for function in known.get(one.qualname, []):
                if functions.state(function) is not State.UNWRITTEN:
                    yield one.name


def stale(root: Path) -> Iterator[str]:
    """The files of a tree that are not as the generator writes them."""
    files = generated()
    for name, text in files.items():
        path = root / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            yield name
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).as_posix() not in files:
            yield f"{path.relative_to(root).as_posix()} (not of the library)"


def write(root: Path) -> None:
    """Write the exercises into a folder, and the reference's checksums."""
    files = generated()
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).as_posix() not in files:
            path.unlink()
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
            f"nothing was written. `python -m stages update` keeps it, "
            f"`python -m stages reset all` puts it aside."
        )
        return 1
    write(root)
    return 0


if __name__ == "__main__":
    sys.exit(main())
