"""Stage 01's check as a page runs it, here without a browser."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from docs.machinery import playing
from docs.machinery.source import ROOT

LIST = "linked_list/linked_list.py"
NAMES = "linked_list/namespace.py"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that a page has."""
    folder = tmp_path_factory.mktemp("page")
    for below, files in (
        ("home", playing.contents()),
        ("course", playing.of_course()),
    ):
        for name, text in files:
            path = folder / below / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return folder


def checked(page: Path, files: dict[str, str]) -> str:
    """What the check says where nothing is installed."""
    code = (
        "import json, pathlib, sys; page = pathlib.Path(sys.argv[1])\n"
        "sys.path.insert(0, '')\n"
        "from playground.exercise import check\n"
        "print(check(json.load(sys.stdin), page / 'course'))\n"
        "assert not {'fx', 'stages'} & {*sys.modules}\n"
    )
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(page)],
        cwd=page / "home",
        input=json.dumps(files),
        capture_output=True,
        text=True,
        check=False,
    )
    assert not run.stderr
    return run.stdout


def version(folder: str) -> dict[str, str]:
    """The files that a reader writes, from fx or as stubs."""
    below = ROOT / folder
    return {one: (below / one).read_text("utf-8") for one in (LIST, NAMES)}


def test_what_is_right_passes(page: Path) -> None:
    said = checked(page, version("fx"))
    assert "Stage 01: exercises done" in said
    assert "75 passed" in said


def test_stubs_are_to_be_written(page: Path) -> None:
    said = checked(page, version("exercises/fx"))
    assert "next: write Link._unlink (ring: 0 of 5" in said
    assert "75 to write" in said


def test_what_is_wrong_is_told_in_the_words_of_the_stage(page: Path) -> None:
    files = version("fx")
    files[LIST] = files[LIST].replace("self._len -= 1", "pass")
    said = checked(page, files)
    assert "One of three links was erased: len() must be 2." in said
    assert "next: fix LinkedList.erase of ring" in said


def test_a_file_that_cannot_be_read_is_told(page: Path) -> None:
    said = checked(page, {**version("fx"), NAMES: "def broken(:\n"})
    assert f"exercises/fx/{NAMES}:1: syntax error" in said
