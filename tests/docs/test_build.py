"""The site builds strictly; what is wrong on a page fails the build at its end.

The whole site is built once.  What it says of a page is the result of that
page's own test, so that one page with an error fails one test.
"""

from __future__ import annotations

import json
import re
import subprocess
import xml.etree.ElementTree as etree
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.machinery.checking import uneven, unknown_names
from docs.machinery.extension import KINDS
from docs.machinery.literate import shown_lines
from docs.machinery.pages import pages as pages_below
from docs.machinery.reference import names
from docs.machinery.reference_pages import GROUPS, REST, examples, group
from docs.machinery.running import printed
from docs.machinery.source import ROOT
from docs.machinery.standalone import GAP
from tests.checks.claims import LEDGER, load
from tests.docs.site import (
    Html,
    Outcome,
    build,
    dead_links,
    html_of,
    one_page,
    outcome_of,
    pages,
)

DOCS = ROOT / "docs"
PAGES = pages_below(DOCS)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """The whole site, built once; and what is to mend on its pages."""
    return outcome_of(ROOT / "mkdocs.yml", tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def site(outcome: Outcome) -> Path:
    """The folder of the built site."""
    if not outcome.pages:
        pytest.skip("there is no site: see test_the_site_builds")
    return outcome.site


@pytest.fixture(scope="module")
def built(site: Path, outcome: Outcome) -> dict[str, Html]:
    """Its pages, if there is a site."""
    return outcome.pages


@pytest.fixture(scope="module")
def dead(site: Path, built: dict[str, Html]) -> list[str]:
    """The links of all pages that lead nowhere."""
    return list(dead_links(site, built))


@pytest.fixture(scope="module")
def shown() -> dict[str, Counter[int]]:
    """How often the pages show each line of each file."""
    return shown_lines(DOCS, KINDS)


def test_the_site_builds(outcome: Outcome) -> None:
    """What the build says of one page is that page's test, the next one."""
    assert outcome.pages, outcome.said
    assert not outcome.elsewhere, "\n".join(outcome.elsewhere)
    assert bool(outcome.status) == bool(outcome.warnings), outcome.said


def test_every_page_is_built(built: dict[str, Html]) -> None:
    assert {html_of(page) for page in PAGES} == built.keys() - {"404.html"}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_nothing_to_mend(
    page: str,
    outcome: Outcome,
    dead: list[str],
    shown: dict[str, Counter[int]],
) -> None:
    """Its blocks, its links, its names, and the lines of its file."""
    start = f"{html_of(page)}: "
    found = outcome.warnings.get(page) or [
        *(link for link in dead if link.startswith(start)),
        *unknown_names(DOCS, page),
        *uneven(page, shown),
    ]
    assert not found, "\n".join(found)


def test_of_a_program_only_what_repeats_is_folded(
    built: dict[str, Html],
) -> None:
    """Each is read as XML: a browser hides all that follows a crossed tag."""
    form = re.compile("<div data-copy=.*?</pre></div>\n?</div>", re.DOTALL)
    folds = 0
    for page in built.values():
        shown: set[str] = set()
        for text in form.findall(page.text):
            program = etree.fromstring(text)
            pieces = program.attrib["data-copy"].split(GAP)
            for fold in program.iterfind(".//span[@class='fx-folded']"):
                folds += 1
                hidden = "".join(fold.itertext()).strip("\n").split(GAP)
                assert shown.issuperset(hidden)
                assert pieces[-2] not in hidden
            shown.update(pieces)
    assert folds > 20


def test_no_block_is_printed_as_text(built: dict[str, Html]) -> None:
    wrong = [n for n, page in built.items() if re.search("/{3,} ", page.text)]
    assert not wrong


def test_nothing_is_loaded_from_elsewhere(built: dict[str, Html]) -> None:
    wrong = [
        f"{name}: {load}"
        for name, page in built.items()
        for load in page.loads
        if "//" in load
    ]
    assert not wrong, "\n".join(wrong)


def test_no_link_leads_to_a_repository_that_is_not_named(
    built: dict[str, Html],
) -> None:
    assert not [n for n, p in built.items() if "Edit this page" in p.text]


def test_no_source_of_the_machinery_is_published(site: Path) -> None:
    assert not [*site.rglob("*.py"), *site.rglob("*.pyi")]


def test_every_claim_is_on_the_page_of_claims(built: dict[str, Html]) -> None:
    rows = load(LEDGER.read_text(encoding="utf-8"))
    page = built["claims/index.html"]
    assert len(rows) > 200
    assert {row.id for row in rows} <= page.ids


def test_each_mark_stands_inside_the_block_of_its_definition(
    built: dict[str, Html],
) -> None:
    rows = load(LEDGER.read_text(encoding="utf-8"))
    expected = {(row.code, row.id) for row in rows if row.code}
    assert len(expected) > 250
    found = [
        mark
        for name, page in built.items()
        if name.startswith("files/")
        for mark in marks_in(page.text)
    ]
    assert sorted(found) == sorted(expected)


def test_a_file_says_whether_the_documents_speak_of_it(
    built: dict[str, Html],
) -> None:
    for name in (path for path in built if path.startswith("files/")):
        text = built[name].text
        marked = 'class="fx-said-here"' in text
        assert marked == ("about it: open a §" in text), name


def test_what_has_changed_stands_first(built: dict[str, Html]) -> None:
    text = built["claims/index.html"].text
    verdicts = re.findall(
        r'<div class="fx-claim[^>]*data-verdict="(\w+)"', text
    )
    number = verdicts.count("changed")
    assert 10 < number < len(verdicts)
    assert set(verdicts[:number]) == {"changed"}


def test_the_differences_that_one_meets_stand_first(
    built: dict[str, Html],
) -> None:
    text = built["differences/index.html"].text
    rank = ["often", "sometimes", "rarely"]
    tables = [
        [rank.index(met) for met in re.findall(r'<tr data-met="(\w+)"', table)]
        for table in re.findall("<table.*?</table>", text, re.DOTALL)
    ]
    assert len(tables) > 5
    assert all(table == sorted(table) for table in tables)
    assert {met for table in tables for met in table} == {0, 1, 2}
    cells = re.findall("<td[^>]*>", text)
    assert all("data-label=" in cell for cell in cells)
    assert text.count('data-label="code"') == 30
    printed("docs.examples.differences.main")


def test_search_knows_every_public_name(site: Path) -> None:
    index = json.loads((site / "search/search_index.json").read_text())
    places = {entry["location"] for entry in index["docs"]}
    missing = [
        entry.name.anchor
        for title in (*GROUPS, REST)
        for top in group(title)
        for entry in (top, *top.members)
        if f"api/{title}/#{entry.name.anchor}" not in places
    ]
    assert not missing


def test_search_knows_the_differences_without_their_rows(site: Path) -> None:
    index = json.loads((site / "search/search_index.json").read_text())
    found = {
        entry["location"]: entry["text"]
        for entry in index["docs"]
        if entry["location"].startswith("differences/")
    }
    assert "printed graphs and generated code" in found["differences/"]
    assert not [text for text in found.values() if "dce-unknown" in text]


def test_each_public_name_is_described_once(built: dict[str, Html]) -> None:
    ids = Counter(
        place
        for title in (*GROUPS, REST)
        for place in re.findall(
            ' id="([^"]+)"', built[f"api/{title}/index.html"].text
        )
    )
    assert {name.anchor: ids[name.anchor] for name in names()} == {
        name.anchor: 1 for name in names()
    }


def test_each_example_belongs_to_a_name_that_is_shown(
    built: dict[str, Html],
) -> None:
    known = {name.anchor for name in names()}
    extra = {one for some in GROUPS.values() for one in some}
    assert len(examples()) > 40
    assert examples().keys() <= known | extra
    printed("docs.examples.api.main")


def marks_in(text: str) -> Iterator[tuple[str, str]]:
    """The claims that a page opens in the block of their definition.

    A block is a section: it has the anchor of each definition that it shows,
    or is the first behind the heading that has it.  The mark stands right
    before the lines in which the definition begins.

    Yields:
        The definition, and the id of a claim.
    """
    blocks = re.split(r'(<section class="fx-lit")', text)
    for before, block in zip(blocks[0::2], blocks[2::2], strict=False):
        headings = re.findall(
            r'<h[23][^>]* id="([\w.]+)"|<h[23] id="([\w.]+)"', before
        )
        anchors = {"".join(pair) for pair in headings[-1:]}
        block = block.partition("</section>")[0]
        anchors.update(re.findall(r'<span[^>]* id="([\w.]+)"', block))
        pieces = re.split(r'<details[^>]* data-definition="([\w.]+)"', block)
        for name, piece in zip(pieces[1::2], pieces[2::2], strict=True):
            claims, _, code = piece.partition("fx-box")
            short = name.rpartition(".")[2]
            first = re.sub("<[^>]+>", "", code)
            if name in anchors and re.search(rf"\b{short}\b", first):
                for id in re.findall(r'claims/#([\w-]+)"', claims):
                    yield name, id


GOOD = "# Title\n\nText.\n"
WRONG = {
    "front matter": (
        "---\ntitle: T\n---\n\n# T\n\n/// sauce | x\nText.\n///\n",
        "page.md:7: no block",
    ),
    "link": (
        "# T\n\n[x](nowhere.md)\n",
        "link 'nowhere.md', but the target is not found",
    ),
    "anchor": ("# T\n\n[x](index.md#nowhere)\n", "not contain an anchor"),
    "own anchor": ("# T\n\n[x](#nowhere)\n", "no such anchor on this page"),
    "exercise": (
        "# T\n\n/// exercises | 01\n///\n",
        "'stages/01.md' is not found",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_ends_the_build(case: str, tmp_path: Path) -> None:
    text, complaint = WRONG[case]
    config = one_page(tmp_path, {"index.md": GOOD, "page.md": text})
    with pytest.raises(subprocess.CalledProcessError) as raised:
        build(config, tmp_path / "site")
    assert complaint in raised.value.output


def test_all_pages_with_errors_are_told_in_a_line_each(tmp_path: Path) -> None:
    wrong = "\n/// excerpt | fx.node.Nod\nText.\n///\n"
    some = {"index.md": GOOD + wrong, "page.md": GOOD + 2 * wrong}
    found = outcome_of(one_page(tmp_path, some), tmp_path / "site")
    assert found.status
    assert found.pages.keys() == {"index.html", "page/index.html", "404.html"}
    assert "<p>Text.</p>" in found.pages["page/index.html"].text
    said = "docs/{}:5: fx/node.py defines no 'Nod'; did you mean Node"
    assert found.elsewhere == []
    line = ""
    for page in some:
        (line,) = found.warnings[page]
        assert line.startswith(said.format(page))
    assert "(and 1 more); see: python -m docs.machinery check page.md" in line


def test_a_page_that_is_missing_or_in_no_menu_ends_the_build(
    tmp_path: Path,
) -> None:
    nav = "nav:\n  - index.md\n  - missing.md\n"
    config = one_page(tmp_path, {"index.md": GOOD, "lost.md": GOOD}, nav)
    with pytest.raises(subprocess.CalledProcessError) as raised:
        build(config, tmp_path / "site")
    assert "missing.md" in raised.value.output
    assert "lost.md" in raised.value.output


def test_a_good_page_builds(tmp_path: Path) -> None:
    config = one_page(tmp_path, {"index.md": GOOD})
    build(config, tmp_path / "site")
    assert (tmp_path / "site" / "index.html").is_file()
    assert (tmp_path / "site" / "sitemap.xml").is_file()


def test_dead_links_are_seen(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(
        '<a id="here" href="#here"></a><a href="#gone"></a><a href="x/"></a>'
    )
    assert list(dead_links(tmp_path, pages(tmp_path))) == [
        "index.html: #gone: no such place on the page",
        "index.html: x/: no such page",
    ]
