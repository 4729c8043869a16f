"""The core of each stage is small, has all exercises, and is listed rightly."""

from __future__ import annotations

import re

import pytest
import yaml

from docs.machinery.hook import MORE, source_tab
from stages.manifest import BreakIt, Exercise, Stage, stages
from tests.checks.core import core_problems, index_problems, rest_of
from tests.checks.sources import ROOT, Source, library, snippet


def test_the_cores_are_small_and_hold_the_exercises() -> None:
    assert list(core_problems(stages(), library())) == []


NOTHING = BreakIt("", "", "")


def test_the_first_lines_of_a_room_tell_the_core_from_the_rest() -> None:
    assert list(index_problems(stages(), library())) == []


@pytest.mark.parametrize(
    ("text", "complaints"),
    [
        ("The core is `a` (first). The rest is `b`.", 0),
        ("The core is `a` and `b`.", 2),
        ("The core is `a`. The rest is little.", 1),
        ("Nothing is said.", 2),
    ],
)
def test_a_room_that_does_not_is_seen(text: str, complaints: int) -> None:
    room = snippet(f'"""Stage 01, x: y.\n\n{text}\n"""\n', "fx/r/__init__.py")
    files = [source("r/a.py", 1), source("r/b.py", 1)]
    found = made_up(("r/a.py",))
    assert len(list(index_problems(found, [room, *files]))) == complaints


def test_a_room_that_does_not_name_a_file_is_seen() -> None:
    room = snippet('"""Extra: x.\n\n`a` does it.\n"""\n', "fx/r/__init__.py")
    files = [source("r/a.py", 1), source("r/b.py", 1)]
    (problem,) = index_problems({}, [room, *files])
    assert "does not say what `b` is for" in problem


def made_up(core: tuple[str, ...], file: str = "a.py") -> dict[int, Stage]:
    """A stage 01 with one exercise, in `file`."""
    hints = ("a", "b", "c")
    one = Exercise("a.f", file, "f", 1, "task", hints, "anchor")
    return {1: Stage(1, "list", "", core, (one,), (), NOTHING)}


def source(name: str, lines: int, stage: int = 1) -> Source:
    """A file of a stage with this many lines of code."""
    text = f'"""Stage 0{stage}, x: y."""\n' + "x = 1\n" * lines
    return snippet(text, f"fx/{name}")


@pytest.mark.parametrize(
    ("found", "sources", "complaint"),
    [
        (made_up(("a.py",)), [source("a.py", 1051)], "core has 1051 lines"),
        (made_up(("a.py", "b.py")), [source("a.py", 1)], "not in fx/"),
        (made_up(("a.py",)), [source("a.py", 1, stage=2)], "another stage"),
        (
            made_up(("a.py",), "b.py"),
            [source("a.py", 1), source("b.py", 1)],
            "b.py holds an exercise and is not in core",
        ),
    ],
)
def test_a_wrong_core_is_seen(
    found: dict[int, Stage], sources: list[Source], complaint: str
) -> None:
    (problem,) = core_problems(found, sources)
    assert complaint in problem


def test_cores_that_are_too_large_together_are_seen() -> None:
    found = {
        n: Stage(n, "s", "", (f"{n}.py",), (), (), NOTHING)
        for n in (1, 2, 3, 4, 5, 6)
    }
    sources = [source(f"{n}.py", 1_000, stage=n) for n in found]
    problems = list(core_problems(found, sources))
    assert problems == ["the cores have 6000 lines (max 5700)"]


def test_the_readme_says_where_each_stage_begins() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (0\d) .*?\| `fx/(\S+)` \|", readme, re.M)
    assert [int(number) for number, _ in rows] == [*stages()]
    for number, place in rows:
        core = stages()[int(number)].core
        assert any(file.startswith(place) for file in core), place


def test_the_site_has_the_core_before_the_rest() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    nav = yaml.safe_load(text[text.index("\nnav:") :])["nav"]
    course, reading, play, *pages, views, last = next(
        one["Stages"] for one in nav if "Stages" in one
    )
    assert [*last] == ["Capstones"]
    first = [course, *reading["First reading"], play, views]
    assert [page for one in first for page in one.values()] == [
        *("course.md", "tiny.md", "why.md", "play.md", "views.md"),
    ]
    assert pages == [f"stages/{number:02d}.md" for number in stages()]
    sources = library()
    for stage, group in zip(stages().values(), source_tab(), strict=False):
        assert isinstance(group, dict)
        ((_, entries),) = group.items()
        core = [one for one in entries if isinstance(one, str)]
        folded = [one for one in entries if isinstance(one, dict)]
        rest = [p for one in folded for p in one[MORE] if isinstance(p, str)]
        assert [_file(one) for one in core] == [*stage.core]
        assert {_file(one) for one in rest} == {*rest_of(stage, sources)}


def _file(page: str) -> str:
    """The file of fx/ that a page shows."""
    return page.removeprefix("files/").removesuffix(".md") + ".py"
