"""The site builds strictly, and what is wrong on a page ends the build."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from docs.machinery.reference import names
from docs.machinery.source import ROOT
from tests.checks.claims import LEDGER, load
from tests.docs.site import Html, build, dead_links, one_page, pages


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole site, built once."""
    target = tmp_path_factory.mktemp("site")
    try:
        build(ROOT / "mkdocs.yml", target)
    except subprocess.CalledProcessError as error:
        pytest.fail(error.output)
    return target


@pytest.fixture(scope="module")
def built(site: Path) -> dict[str, Html]:
    return pages(site)


def test_no_block_is_printed_as_text(built: dict[str, Html]) -> None:
    wrong = [n for n, page in built.items() if re.search("/{3,} ", page.text)]
    assert not wrong


def test_every_link_leads_somewhere(site: Path, built: dict[str, Html]) -> None:
    problems = list(dead_links(site, built))
    assert not problems, "\n".join(problems)


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
