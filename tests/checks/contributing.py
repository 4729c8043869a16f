"""The table of CONTRIBUTING.md, "To change X, look at Y", beside the tree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.checks.sources import ROOT

FILE = ROOT / "CONTRIBUTING.md"

_row = re.compile(r"^\| (.+) \| (.+) \| (.+) \|$", re.MULTILINE)
_path = re.compile(r"`([\w.]+/[\w./]*)`")


class Row(NamedTuple):
    """A row of the table.

    Attributes:
        change: what somebody wants to change.
        look_at: the files and folders to look at; folders end in a slash.
        tests: the files and folders of its tests.
    """

    change: str
    look_at: tuple[str, ...]
    tests: tuple[str, ...]


def rows(text: str) -> list[Row]:
    """The rows of the table, without its head."""
    return [
        Row(change, tuple(_path.findall(where)), tuple(_path.findall(tests)))
        for change, where, tests in _row.findall(text)
        if change != "to change"
    ]


def stale(table: Iterable[Row], root: Path) -> Iterator[str]:
    """Rows that name a file that is not there, or no file at all.

    In a path NN stands for the number of each stage.
    """
    for row in table:
        for column, paths in (("look at", row.look_at), ("tests", row.tests)):
            if not paths:
                yield f"{row.change}: there is no path under {column!r}"
            for path in paths:
                if not _is_there(root, path):
                    yield f"{row.change}: there is no {path}"


def _is_there(root: Path, path: str) -> bool:
    """Whether a path leads to a file, or with a slash to a folder."""
    if "NN" in path:
        return all(
            (root / path.replace("NN", folder.name)).exists()
            for folder in (root / "stages").glob("[0-9][0-9]")
        )
    found = root / path
    return found.is_dir() if path.endswith("/") else found.is_file()


def uncovered(table: Iterable[Row], files: Iterable[str]) -> Iterator[str]:
    """Files that no row has, neither themselves nor a folder above them."""
    known = tuple(path for row in table for path in row.look_at)
    for file in files:
        folders = tuple(path for path in known if path.endswith("/"))
        if file not in known and not file.startswith(folders):
            yield f"{file}: no row of CONTRIBUTING.md says when to look at it"
