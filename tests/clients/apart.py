"""Clients that get an environment each, which uv makes and which is removed.

    make clients ONLY=torchao          python -m tests.clients torchao

Libraries that other people maintain ask for different versions of the same
packages, and each takes gigabytes. `apart.toml` says what is installed for
which. With several names, or `apart` for all of them, one follows the other.
"""

from __future__ import annotations

import os
import shutil
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.versions import uv

FILE: Final = Path(__file__).with_name("apart.toml")
NEWEST: Final = uv.BUILD / "newest" / "bin" / "python"


class Apart(NamedTuple):
    """What `apart.toml` says of a client.

    Attributes:
        about: the library, and what is done with it.
        packages: what uv installs.
    """

    about: str
    packages: list[str]


def _read() -> dict[str, Apart]:
    """The file's clients by name."""
    with FILE.open("rb") as file:
        return {n: Apart(**fields) for n, fields in tomllib.load(file).items()}


APART: Final = _read()
"""File in `cases/` -> what it is about, and what it needs."""


@contextmanager
def environment(client: str) -> Iterator[str]:
    """The Python of a client's environment, which is there inside the block.

    Raises:
        UvError: the packages cannot be installed.
    """
    folder = uv.BUILD / "clients-apart" / client
    settings = uv.settings(os.environ)
    base = ["--python", str(NEWEST)] if NEWEST.exists() else []
    try:
        uv.run("venv", "-q", "--clear", *base, str(folder), env=settings)
        python = str(folder / "bin" / "python")
        packages = APART[client].packages
        into = ("--python", python)
        uv.run("pip", "install", "-q", *into, *packages, env=settings)
        yield python
    finally:
        shutil.rmtree(folder, ignore_errors=True)
