"""The check of a stage as a page runs it, here without a browser."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from docs.machinery import playing
from docs.machinery.source import ROOT
from stages.manifest import stages
from tests.docs.conftest import printed_in_page

NAMES = "linked_list/namespace.py"
TESTS = {"01": "75", "02": "81", "03": "51"}
"""How many of each stage a page has."""

WRONG = {
    "01": ("self._len -= 1", "pass", "erased: len() must be 2."),
    "02": ("node.users[self] = None", "pass", "both must have add among"),
    "03": ("kwargs or {}", "dict(**kwargs)", "torch may give None for kwargs"),
}
"""A line of each stage, another one, and what that one is told."""


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


def checked(page: Path, stage: str, files: dict[str, str]) -> str:
    """What the check says where nothing is installed."""
    code = (
        "import os, pathlib; os.chdir(sys.argv[1]); sys.path[0] = ''\n"
        "from playground.exercise import check_page\n"
        "stage, files = json.load(sys.stdin)\n"
        "told = check_page(stage, files, pathlib.Path('../course').resolve())\n"
        "said = json.loads(told)\n"
        "print(said['printed'], *said['hints'], 'why', said['why'])\n"
        "for one in said['signs']: print('sign', one[1], one[0])\n"
        "assert not {'fx', 'stages'} & {*sys.modules}\n"
    )
    return printed_in_page(page / "home", code, [stage, json.dumps(files)])


def version(stage: str, folder: str = "fx") -> dict[str, str]:
    """The files that a reader writes, from fx or as stubs."""
    names = playing.asked(int(stage))
    return {one: (ROOT / folder / one).read_text("utf-8") for one in names}


def wrong(stage: str) -> dict[str, str]:
    """The files with one mistake."""
    line, other, _ = WRONG[stage]
    files = version(stage)
    assert "".join(files.values()).count(line) == 1
    return {name: text.replace(line, other) for name, text in files.items()}


@pytest.mark.parametrize("stage", TESTS)
def test_what_is_right_passes(page: Path, stage: str) -> None:
    said = checked(page, stage, version(stage))
    assert f"{TESTS[stage]} passed" in said
    whole = "These pass. Now: pytest" if stage == "03" else "exercises done"
    assert whole in said


@pytest.mark.parametrize("stage", TESTS)
def test_stubs_are_to_be_written(page: Path, stage: str) -> None:
    said = checked(page, stage, version(stage, "exercises/fx"))
    assert "next: write " in said
    assert f"{TESTS[stage]} to write" in said
    assert said.count("\nsign · ") == len(stages()[int(stage)].exercises)
    assert stages()[int(stage)].pieces[0].functions[0].hints[0] in said


@pytest.mark.parametrize("stage", TESTS)
def test_what_is_wrong_is_told_in_the_words_of_the_stage(
    page: Path, stage: str
) -> None:
    said = " ".join(checked(page, stage, wrong(stage)).split())
    assert WRONG[stage][2] in said
    assert "next: fix " in said
    assert "sign ✗ " in said
    assert "sign ✓ " in said


def test_what_is_not_written_is_not_wrong(page: Path) -> None:
    files = version("01", "exercises/fx")
    stub = 'raise NotImplementedError("stage 01: Link.prepend")'
    assert sum(text.count(stub) for text in files.values()) == 1
    wrong = {n: text.replace(stub, "return None") for n, text in files.items()}
    said = checked(page, "01", wrong)
    assert "sign ✗ Link.prepend" in said
    assert said.count("sign ✗") == 1


def test_a_file_that_cannot_be_read_is_told(page: Path) -> None:
    broken = {**version("01"), NAMES: "def broken(:\n"}
    said = checked(page, "01", broken)
    assert f"exercises/fx/{NAMES}:1: syntax error" in said
    assert "sign   Link.prepend" in said
