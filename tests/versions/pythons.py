"""Find the Pythons from 3.11 to 3.14 of this machine that really start.

What is on the path may be a shim that ends with a message, so each candidate is
asked for its version.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

MINORS: Final = ("3.11", "3.12", "3.13", "3.14")
"""The versions that fx is for; the classifiers in pyproject.toml say so too."""

_SAY = """
import sys
version = sys.version_info
usual = sys.implementation.name == "cpython" and "t" not in sys.abiflags
if version.releaselevel != "final" or not usual:
    sys.exit(1)
print(*version[:3], sys.executable)
"""
"""Prints a version and a path, unless it is a preview or another build."""


class Python(NamedTuple):
    """A Python that has answered."""

    version: tuple[int, int, int]
    path: str

    @property
    def minor(self) -> str:
        """Such as `"3.12"`."""
        return f"{self.version[0]}.{self.version[1]}"

    @property
    def text(self) -> str:
        """Such as `"3.12.1"`."""
        return ".".join(map(str, self.version))


def asked(path: str) -> Python | None:
    """The Python at a path, or None if that does not start or is a preview.

    A path that is only a name, such as `python3.12`, is looked for on PATH.
    """
    try:
        done = subprocess.run(
            [path, "-I", "-c", _SAY],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode:
        return None
    major, minor, patch, where = done.stdout.split(maxsplit=3)
    return Python((int(major), int(minor), int(patch)), where.strip())


def candidates() -> Iterator[str]:
    """Where Pythons are: on the path, and where pyenv and uv keep them."""
    yield sys.executable
    for folder in os.get_exec_path():
        yield from (str(Path(folder, f"python{minor}")) for minor in MINORS)
    home = Path.home()
    pyenv = Path(os.environ.get("PYENV_ROOT", home / ".pyenv"))
    ours = os.environ.get("UV_PYTHON_INSTALL_DIR")
    uv = Path(ours) if ours else home / ".local" / "share" / "uv" / "python"
    for kept in (pyenv / "versions", uv):
        paths = kept.glob("*3.1[1-4]*/bin/python3")
        yield from map(str, sorted(paths))


def found(more: Iterable[str] = ()) -> dict[str, Python]:
    """The best Python of each minor version, the oldest version first.

    Args:
        more: paths of others; they are preferred.
    """
    best: dict[str, Python] = {}
    for preferred, paths in ((False, candidates()), (True, more)):
        for path in paths:
            python = asked(path)
            if python is None or python.minor not in MINORS:
                continue
            known = best.get(python.minor)
            if preferred or known is None or python.version > known.version:
                best[python.minor] = python
    return {minor: best[minor] for minor in MINORS if minor in best}


def newest(pythons: Iterable[Python]) -> Python:
    """The newest that is not the first of its minor version, if there is one.

    Of 3.13.0, for instance, Dynamo says that its guards are slow there; a year
    of mending comes with the releases after it.

    Raises:
        LookupError: there is no Python.
    """
    ordered = sorted(pythons, key=lambda python: python.version)
    if not ordered:
        raise LookupError(
            f"no Python from {MINORS[0]} to {MINORS[-1]} was found: make "
            "PYTHON=… names one"
        )
    mended = [python for python in ordered if python.version[2]]
    return (mended or ordered)[-1]
