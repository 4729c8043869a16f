"""`python -m stages read`: pages without a site, answers folded until asked."""

from __future__ import annotations

import io
import re
import threading
import urllib.request
import webbrowser
from pathlib import Path

import pytest
from rich.console import Console

from stages import read
from stages.manifest import ROOT, exercises, stages
from stages.proof import predictions

PAGES = [
    *sorted((ROOT / "docs" / "stages").glob("*.md")),
    *sorted((ROOT / "docs" / "capstones").glob("*.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]


def drawn(path: Path, *, answers: bool = False) -> str:
    """What is printed where nobody can press a key."""
    out = io.StringIO()
    console = Console(file=out, width=100)
    read.draw(path, console, answers=answers)
    return out.getvalue()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_each_page_can_be_drawn(path: Path) -> None:
    said = drawn(path)
    assert "///" not in said
    assert not re.search(r"\]\([\w./#-]+\)", said)


@pytest.mark.parametrize("number", stages())
def test_answers_are_folded_until_asked(number: int) -> None:
    path = read.page_of(str(number))
    asked, told = drawn(path), drawn(path, answers=True)
    count = len([*predictions(path.read_text(encoding="utf-8"))])
    command = f"(the answer: python -m stages read {number:02d} --answers)"
    assert asked.count(command) == count > 0
    assert asked.count("it prints") < told.count("it prints")
    assert command not in told


def test_code_is_put_in_and_solutions_are_not() -> None:
    said = drawn(read.page_of("03"))
    assert "def bound_again() -> None:" in said
    assert "class Operator(NamedTuple):" in said
    assert "return f\"__{self.name.strip('_')}__\"" in said
    shown = {
        block.name
        for path in PAGES
        for block in read.blocks(path.read_text(encoding="utf-8"))
        if block.kind == "excerpt"
    }
    solutions = {f"fx.{name}" for name in exercises()}
    assert not shown & solutions


def test_what_can_be_run_is_shown_or_named() -> None:
    assert "python -m stages run stages/03/demo.py" in drawn(read.page_of("03"))
    assert "def schemas() -> None:" in drawn(read.page_of("views"))


def test_a_part_of_a_file_is_found_by_its_name() -> None:
    name = "fx.linked_list.namespace"
    known = read.source_of(f"{name}.RESERVED")
    assert known.startswith("RESERVED: Final") and known.endswith('globals."""')
    head = read.source_of(f"{name}.Namespace", header=True)
    assert head.startswith("class Namespace:") and "def " not in head
    assert read.source_of(name).startswith('"""Stage 01')
    with pytest.raises(LookupError, match=r"has no Namespace\.missing"):
        read.source_of(f"{name}.Namespace.missing")


def test_a_page_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(LookupError, match="why"):
        read.page_of("nothing")
    with pytest.raises(LookupError):
        read.page_of("../README")


def test_a_built_site_is_served_and_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "stages" / "03" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text("the page")
    found: list[str] = []

    def opened(address: str) -> bool:
        with urllib.request.urlopen(address, timeout=10) as answer:
            found.append(answer.read().decode())
        return True

    class Ended(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            raise KeyboardInterrupt

    monkeypatch.setattr(webbrowser, "open", opened)
    monkeypatch.setattr(read, "has_browser", lambda: True)
    monkeypatch.setattr(read, "_until_interrupted", Ended().wait)
    out = io.StringIO()
    console = Console(file=out, width=100)
    assert read.read(read.page_of("03"), console, site=tmp_path) == 0
    assert found == ["the page"]
    assert "http://127.0.0.1:" in out.getvalue()


def test_without_a_site_it_is_drawn_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "has_browser", lambda: True)
    out = io.StringIO()
    console = Console(file=out, width=100)
    assert read.read(read.page_of("3"), console, site=tmp_path) == 0
    assert "Running on nothing" in out.getvalue()
