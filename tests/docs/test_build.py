"""The site builds strictly; what is wrong on a page fails the build at its end.

The whole site is built once.  What it says of a page is the result of that
page's own test, so that one page with an error fails one test.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from docs.machinery.checking import pages as pages_below
from docs.machinery.checking import uneven, unknown_names
from docs.machinery.extension import KINDS
from docs.machinery.literate import shown_lines
from docs.machinery.reference import names
from docs.machinery.source import ROOT
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
def built(site: Path) -> dict[str, Html]:
    return pages(site)


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


def test_no_source_of_the_machinery_is_published(site: Path) -> None:
    assert not [*site.rglob("*.py"), *site.rglob("*.pyi")]


def test_every_claim_is_on_the_page_of_claims(built: dict[str, Html]) -> None:
    rows = load(LEDGER.read_text(encoding="utf-8"))
    page = built["claims/index.html"]
    assert len(rows) > 200
    assert {row.id for row in rows} <= page.ids


def test_search_knows_every_public_name(site: Path) -> None:
    index = json.loads((site / "search/search_index.json").read_text())
    places = {entry["location"] for entry in index["docs"]}
    missing = [
        name.anchor for name in names() if f"api/#{name.anchor}" not in places
    ]
    assert not missing


GOOD = "# Title\n\nText.\n"
WRONG = {
    "block": (
        "# T\n\n/// sauce | fx.node\nText.\n///\n",
        "page.md:3: no block",
    ),
    "name": (
        "# T\n\n/// excerpt | fx.node.Nod\nText.\n///\n",
        "page.md:3: fx/node.py defines no 'Nod'",
    ),
    "mark": (
        "# T\n\n/// excerpt | fx.node.Node\n    mark: nowhere\n\nText.\n///\n",
        "page.md:3: mark: no line here contains 'nowhere'",
    ),
    "option": (
        "# T\n\n/// excerpt | fx.node.Node\n    makr: x\n\nText.\n///\n",
        "page.md:4: /// excerpt has no option 'makr'",
    ),
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
