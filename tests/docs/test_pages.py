"""What the pages must hold, read from their Markdown."""

from __future__ import annotations

import ast
import re
import textwrap
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pytest

from docs.machinery import terms
from docs.machinery.directives import Directive, read_page
from docs.machinery.extension import KINDS
from docs.machinery.literate import span_of
from docs.machinery.pages import written
from docs.machinery.reference_pages import EXAMPLES as API
from docs.machinery.source import ROOT
from docs.machinery.standalone import standalone
from docs.machinery.words import REFERENCE as REFERENCE_HEADING
from fx.show import __main__ as show
from stages import functions
from stages.manifest import REFERENCE, Exercise, exercises, stages

DOCS = ROOT / "docs"
PAGES = written(DOCS)
STAGES = sorted(p.name for p in (ROOT / "stages").glob("0*/") if p.is_dir())


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def blocks(page: str) -> list[Directive]:
    return read_page(page, text_of(page).splitlines(), KINDS).directives


def slugs(page: str) -> set[str]:
    """The ids of a page's headings."""
    titles = re.findall(r"^#{1,6} (.+)$", text_of(page), re.MULTILINE)
    return {
        re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower())
        for title in titles
    }


@pytest.mark.parametrize("stage", STAGES)
def test_each_exercise_is_explained_on_its_stage(stage: str) -> None:
    page = f"stages/{stage}.md"
    assert page in PAGES, f"docs/{page} is missing"
    shown = [b.argument for b in blocks(page) if b.name == "exercises"]
    assert shown == [stage]
    wanted = stages()[int(stage)]
    anchors = {one.anchor for one in wanted.exercises}
    anchors |= {piece.anchor for piece in wanted.pieces}
    missing = anchors - slugs(page)
    assert not missing, f"docs/{page} lacks headings for {sorted(missing)}"


def test_what_there_is_to_write_is_counted() -> None:
    row = r"\| \[0(\d) .+?\) \| [^|]+ \| (\d+) \| (\d+) \| (\d+) \|"
    told = re.findall(row, text_of("classes.md"))
    lines = Counter[int]()
    for one in exercises().values():
        lines[one.stage] += functions.body_lines(written_for(one))
    assert [[int(cell) for cell in cells] for cells in told] == [
        [number, len(stage.pieces), len(stage.exercises), lines[number]]
        for number, stage in stages().items()
    ]
    counts = {len(stage.exercises) for stage in stages().values()}
    assert (min(counts), max(counts)) == (5, 7)
    for page in ("docs/course.md", "exercises/README.md", "CONTRIBUTING.md"):
        assert "five to seven " in (ROOT / page).read_text("utf-8")


def written_for(one: Exercise) -> functions.Function:
    """The reference's function for an exercise."""
    text = (REFERENCE / one.file).read_text(encoding="utf-8")
    return functions.function(ast.parse(text), one.qualname)


@pytest.mark.parametrize("stage", STAGES)
def test_each_stage_shows_its_demo_a_film_and_a_question(stage: str) -> None:
    page = f"stages/{stage}.md"
    assert page in PAGES, f"docs/{page} is missing"
    names = {block.name for block in blocks(page)}
    assert {"claims", "exercises", "predict", "run", "trace"} <= names
    demos = [b.argument for b in blocks(page) if b.name == "run"]
    assert f"stages.{stage}.demo" in demos


def plain(statements: Iterable[ast.stmt]) -> str:
    """Code without its layout and indentation."""
    lines = "\n".join(map(ast.unparse, statements)).splitlines()
    return "\n".join(line.strip() for line in lines)


def asked(one: Exercise) -> str:
    """The reference's body of an exercise."""
    return plain(written_for(one).body[1:])


def shown(block: Directive) -> str:
    """The code that a block shows."""
    if block.name == "excerpt":
        code = textwrap.dedent(span_of(block).text())
    elif block.name in ("predict", "run"):
        code = standalone(block.argument)
    else:
        return ""
    return plain(ast.parse(code).body)


@pytest.mark.parametrize("stage", STAGES)
def test_no_exercise_is_shown_on_a_page_of_a_stage(stage: str) -> None:
    bodies = {one.name: asked(one) for one in exercises().values()}
    long = {name: b for name, b in bodies.items() if b.count("\n") > 2}
    code = "\n\n".join(map(shown, blocks(f"stages/{stage}.md")))
    assert [name for name, body in long.items() if body in code] == []


def test_all_claims_are_shown() -> None:
    assert [block.name for block in blocks("claims.md")] == ["ledger"]


@pytest.mark.parametrize("page", PAGES)
def test_python_is_shown_by_name_and_never_pasted(page: str) -> None:
    fences = re.findall(r"^ *(?:```|~~~) *(\w*)", text_of(page), re.MULTILINE)
    assert not set(fences) & {"python", "py", "python3", "pycon"}


EXAMPLES = [
    path.stem
    for path in sorted((DOCS / "examples").glob("*.py"))
    if path.name != "__init__.py"
]


def used() -> set[str]:
    """The examples that a page names, and those that are shown otherwise."""
    found = [block for page in PAGES for block in blocks(page)]
    stems = [one.argument for one in found if one.name == "graph"]
    stems += [API.stem, "passes", "differences", "play_more"]
    named = {block.argument for block in found}
    return {*named, *(f"docs.examples.{stem}" for stem in stems)}


@pytest.mark.parametrize("stem", EXAMPLES)
def test_each_example_is_shown(stem: str) -> None:
    name = f"docs.examples.{stem}"
    assert any(
        shown == name or shown.startswith(f"{name}.") for shown in used()
    )


def test_each_picture_is_shown() -> None:
    files = (DOCS / "machinery" / "pictures").glob("[a-z]*.py")
    drawn = {
        b.argument for p in PAGES for b in blocks(p) if b.name == "picture"
    }
    assert {file.stem for file in files} == drawn


def test_each_term_is_used() -> None:
    """A term of the glossary that no page links to explains nothing."""
    links = {
        anchor
        for page in PAGES
        for anchor in re.findall(r"glossary\.md#([\w-]+)\)", text_of(page))
    }
    assert slugs("glossary.md") - links - {"glossary"} == set()
    assert set(terms.meanings()) == links


def test_a_link_to_the_glossary_says_what_the_term_means() -> None:
    made = terms.explained('<a href="../../glossary/#leaf-module">leaf</a>')
    title = made.removeprefix('<a href="../../glossary/#leaf-module" title="')
    assert title != made
    assert title.startswith("A module that tracing records"), title
    other = '<a href="../01/#leaf-module">leaf</a>'
    assert terms.explained(other) == other


COMMANDS = re.findall(
    r"^    python -m fx\.show (.+)$",
    text_of("files/show/page.md"),
    re.MULTILINE,
)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_that_show_a_graph_work_in_a_clone(
    command: str, tmp_path: Path
) -> None:
    *arguments, flag, name = command.split()
    assert flag == "-o"
    assert show.main([*arguments, flag, str(tmp_path / name)]) == 0
    assert "<title>" in (tmp_path / name).read_text(encoding="utf-8")


def test_a_page_shows_such_commands() -> None:
    assert len(COMMANDS) == 2


FILE_PAGES = [p for p in PAGES if REFERENCE_HEADING in text_of(p)]


@pytest.mark.parametrize("page", FILE_PAGES)
def test_what_is_for_reference_follows_the_file(page: str) -> None:
    above, _, _ = text_of(page).partition(REFERENCE_HEADING)
    spans = [
        span_of(block)
        for block in blocks(page)
        if block.name == "source" and block.line > above.count("\n")
    ]
    assert spans
    for span, following in pairwise(spans):
        if span.module.path == following.module.path:
            assert span.last < following.first, following.title
