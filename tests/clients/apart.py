"""Clients that get an environment each, which uv makes and which is removed.

    make clients ONLY=torchao          python -m tests.clients torchao

Libraries that other people maintain ask for different versions of the same
packages, and each takes gigabytes. `apart.toml` says what is installed for
which. With several names, or `apart` for all of them, one follows the other.

Each runs a third time when its files say `fx` where they said `torch.fx`.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.process import ROOT

FILE: Final = Path(__file__).with_name("apart.toml")
BUILD: Final = ROOT / "build"
NEWEST: Final = BUILD / "newest" / "bin" / "python"


class Apart(NamedTuple):
    """What `apart.toml` says of a client.

    Attributes:
        about: the library, and what is done with it.
        packages: what uv installs.
        without_dependencies: what it installs then, and nothing for that.
    """

    about: str
    packages: list[str]
    without_dependencies: Sequence[str] = ()


_NOT_REWRITTEN: Final = frozenset(
    ("functorch", "nvidia", "torch", "torchgen", "triton")
)
"""Folders of packages that belong to PyTorch."""


def _read() -> dict[str, Apart]:
    """The file's clients by name."""
    with FILE.open("rb") as file:
        return {n: Apart(**fields) for n, fields in tomllib.load(file).items()}


APART: Final = _read()
"""File in `cases/` -> what it is about, and what it needs."""


def _uv(*arguments: str) -> None:
    """Run the uv on the path, or the one that the Makefile installs."""
    program = shutil.which("uv") or str(BUILD / "uv" / "bin" / "uv")
    subprocess.run([program, "-q", *arguments], cwd=ROOT, check=True)


@contextmanager
def environment(client: str) -> Iterator[str]:
    """The Python of a client's environment, which is there inside the block.

    Raises:
        CalledProcessError: the packages cannot be installed.
    """
    folder = BUILD / "clients-apart" / client
    base = ["--python", str(NEWEST)] if NEWEST.exists() else []
    try:
        _uv("venv", "--clear", *base, str(folder))
        python = str(folder / "bin" / "python")
        install = ("pip", "install", "--python", python)
        _uv(*install, *APART[client].packages)
        if alone := APART[client].without_dependencies:
            _uv(*install, "--no-deps", *alone)
        yield python
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def rewritten(source: str) -> str:
    """A file as somebody edits it who replaces torch.fx by fx."""

    def imported(found: re.Match[str]) -> str:
        """`from torch import fx, nn`."""
        parts = found[2].strip("()").split(",")
        names = [each.strip() for each in parts if each.strip()]
        ours = [each for each in names if each.split()[:1] == ["fx"]]
        theirs = ", ".join(each for each in names if each not in ours)
        lines = [f"import {each}" for each in ours]
        lines += [f"from torch import ({theirs})"] if ours and theirs else []
        return found[1] + "; ".join(lines) if ours else found[0]

    made = re.sub(
        r"^([ \t]*)from torch import (\([^()#]*\)|[^()#\n]*)$",
        imported,
        source,
        flags=re.MULTILINE,
    )
    made = re.sub(
        r"^([ \t]*)import torch\.fx((?:\.\w+)*)$",
        r"\1import torch, fx\2",
        made,
        flags=re.MULTILINE,
    )
    made = re.sub(r"(?<![\w.])torch\.fx\b", "fx", made)
    if made == source:
        return source
    for part in ast.parse(made).body:
        is_future = getattr(part, "module", "") == "__future__"
        if not is_future and not isinstance(part, ast.Expr):
            lines = made.splitlines(keepends=True)
            lines.insert(part.lineno - 1, "import fx\n")
            return "".join(lines)
    return made


def rewrite(python: str) -> Path:
    """Rewrite the libraries of an environment, and a copy of the programs.

    Files are put in place of others, because uv shares those with its cache.

    Returns:
        The folder that has the programs.
    """
    folder = Path(python).parents[1]
    programs = folder / "programs"
    shutil.copytree(
        ROOT / "tests",
        programs / "tests",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    (packages,) = folder.glob("lib/python*/site-packages")
    files = [*programs.rglob("*.py")]
    for package in packages.iterdir():
        if package.name not in _NOT_REWRITTEN:
            files += package.rglob("*.py") if package.is_dir() else ()
    for file in files:
        source = file.read_bytes().decode("utf-8", "replace")
        made = rewritten(source) if "fx" in source else source
        if made != source:
            file.unlink()
            file.write_text(made, encoding="utf-8")
    return programs
