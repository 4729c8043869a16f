"""Pages: alone on this machine, fast, readable, at any width.

Tried are all pages but those of files, which are drawn alike: of these, the
longest that is written by hand and the longest that is made, of each folder.
"""

from __future__ import annotations

from pathlib import PurePath

import pytest

from docs.machinery.pages import DOCS, made, written
from docs.machinery.source import FILES, ROOT
from tests.docs.browser.browser import Browser, Scheme


def tried() -> list[str]:
    """The pages to try."""
    longest: dict[tuple[str, bool], tuple[int, str]] = {}
    chosen = []
    for page in [*written(DOCS), *made(DOCS)]:
        folder, by_hand = str(PurePath(page).parent), (DOCS / page).is_file()
        if not page.startswith(FILES):
            chosen.append(page)
            continue
        shown = ROOT / "fx" / page.removeprefix(FILES).replace(".md", ".py")
        size = shown.stat().st_size if shown.is_file() else 0
        kind = folder, by_hand
        longest[kind] = max(longest.get(kind, (0, "")), (size, page))
    return sorted([*chosen, *(page for _, page in longest.values())])


PAGES = [page.removesuffix(".md") for page in tried()]
PLAIN = "404.html"
"""The page that has the frame of all pages, and one heading in it."""

TIMES = 10
"""How many times as much of the processor a page may take as the plain one.
The seconds are of the machine: the longest page took one on two cores of its
own, and 1.5 on shared ones."""

_LOADED = "return performance.getEntriesByType('navigation')[0].loadEventEnd"

_WIDE = """
return [...document.querySelectorAll('.md-content *')].filter(e =>
  e.getBoundingClientRect().right > innerWidth + 1 &&
  !e.closest('pre, .fx-scroll, .md-typeset__scrollwrap, .highlight'))
  .slice(0, 3).map(e => e.outerHTML.slice(0, 120))
"""


def url_of(page: str) -> str:
    """A page's address below the site."""
    return f"{page}/".removesuffix("index/")


@pytest.mark.parametrize("page", PAGES)
def test_no_request_leaves_this_machine(browser: Browser, page: str) -> None:
    browser.open(url_of(page))
    browser.run("window.scrollTo(0, document.body.scrollHeight)")
    assert browser.strangers() == []
    assert browser.complaints() == []
    assert browser.run("return document.title")


def taken(browser: Browser, address: str) -> float:
    """Open a page; the seconds of the processor until it is there."""
    browser.driver.get("about:blank")
    before = browser.seconds()
    browser.open(address)
    browser.wait(_LOADED)
    return browser.seconds() - before


@pytest.mark.parametrize("page", PAGES)
def test_it_is_soon_there(browser: Browser, page: str) -> None:
    plain: list[float] = []
    found: list[float] = []
    while len(found) < 5:
        plain.append(taken(browser, PLAIN))
        found.append(taken(browser, url_of(page)))
        if 0 < min(found) < TIMES * min(plain):
            return
    pytest.fail(f"{min(found)} s, and the plain page {min(plain)}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", PAGES)
def test_nobody_is_kept_out(
    browser: Browser, page: str, scheme: Scheme
) -> None:
    browser.look(1400, scheme)
    browser.open(url_of(page))
    shown = browser.run("return document.body.dataset.mdColorScheme")
    assert shown == {"light": "default", "dark": "slate"}[scheme]
    browser.run(
        "document.querySelectorAll('.md-content details')"
        ".forEach(one => { one.open = true })"
    )
    # Only the colours are others in the dark.
    rules = ("color-contrast",) if scheme == "dark" else ()
    assert not (found := browser.barriers(*rules)), "\n".join(found)


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("page", PAGES)
def test_it_does_not_scroll_sideways(
    browser: Browser, page: str, width: int
) -> None:
    browser.look(width)
    browser.open(url_of(page))
    assert browser.run("return innerWidth") == width
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.run(_WIDE) == []
