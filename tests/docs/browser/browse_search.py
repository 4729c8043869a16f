"""Search finds public names, and what users ask for."""

from __future__ import annotations

import pytest

from docs.machinery.reference import Name
from docs.machinery.reference_pages import GROUPS, REST, group
from tests.docs.browser.browser import Browser
from tests.docs.browser.queries import LATER, NEWCOMERS, QUERIES, Query

_ASK = """
const field = document.querySelector('.md-search__input');
field.focus();
field.value = arguments[0];
field.dispatchEvent(new Event('input', {bubbles: true}));
field.dispatchEvent(new KeyboardEvent('keyup', {bubbles: true}));
"""
# More is listed each time that the list's end comes into view.
_FOUND = """
const box = document.querySelector('.md-search__scrollwrap');
box.scrollTop = box.scrollTop ? 0 : box.scrollHeight;
return [...document.querySelectorAll('.md-search-result__link')]
  .some(link => link.href.split('?')[0].endsWith('api/' + arguments[1]) &&
    decodeURIComponent(link.hash) == '#' + arguments[0])
"""

_DONE = """
const said = document.querySelector('.md-search-result__meta').textContent;
return said.match(/no matching/i) || (
  document.querySelector('.md-search-result__link') && said.match(/matching/))
"""
_NOTHING = "return !document.querySelector('.md-search-result__link')"


@pytest.fixture(scope="module")
def searching(window: Browser) -> Browser:
    """A page whose search is ready."""
    window.look(1400)
    window.open("api/")
    window.wait("return document.readyState == 'complete'")
    return window


def some(title: str) -> list[Name]:
    """A group's first name, its last, and one between them.

    That the index has each name, tests/docs/test_build.py asks.
    """
    names = [
        entry.name for top in group(title) for entry in (top, *top.members)
    ]
    return [names[0], names[len(names) // 2], names[-1]]


NAMES = [
    pytest.param(name, f"{title}/", id=name.anchor)
    for title in (*GROUPS, REST)
    for name in some(title)
]


@pytest.mark.parametrize(("name", "page"), NAMES)
def test_search_finds(searching: Browser, name: Name, page: str) -> None:
    searching.run(_ASK, "")  # what was found before goes first
    searching.wait(_NOTHING)
    searching.run(_ASK, name.key)
    assert searching.wait(_FOUND, name.anchor, page)


def test_search_does_not_find_what_is_not_there(searching: Browser) -> None:
    searching.run(_ASK, "create_nothing_at_all")
    searching.wait(
        "return document.querySelector('.md-search-result__meta')"
        ".textContent.match(/no matching/i)"
    )


_FIRST = """
const link = document.querySelector(
  '.md-search-result__item > .md-search-result__link');
return link && link.href.split(/[?#]/)[0]
"""

RIGHT = 38
"""How many queries have the right page first; 6 before there were tags."""


def wrong(searching: Browser, queries: tuple[Query, ...]) -> list[str]:
    """The queries of which another page is the first result."""
    found = []
    for query in queries:
        searching.run(_ASK, "")
        searching.wait(_NOTHING)
        searching.run(_ASK, query.words)
        searching.wait(_DONE)
        first = str(searching.run(_FIRST) or "").removeprefix(searching.site)
        if first not in query.pages or not searching.run(_FIRST):
            found.append(f"{query.words}: {first or 'nothing'}")
    return found


def test_the_first_result_is_the_page_that_explains(
    searching: Browser,
) -> None:
    missed = wrong(searching, QUERIES)
    assert len(QUERIES) == 40
    assert len(QUERIES) - len(missed) >= RIGHT, "\n".join(missed)


def test_a_newcomer_finds_what_others_did_not(searching: Browser) -> None:
    missed = wrong(searching, NEWCOMERS + LATER)
    assert missed in ([], ["what is a proxy: tasks/"]), "\n".join(missed)
