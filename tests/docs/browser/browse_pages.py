"""Pages: alone on this machine, fast, readable, at any width.

Tried are all pages but those of files, which are drawn alike: of these, the
longest that are written by hand and the longest that are made.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nlargest

import pytest

from docs.machinery.pages import DOCS, made, written
from docs.machinery.source import FILES, ROOT
from tests.docs.browser.browser import Browser

ALIKE = 3
"""How many pages of files are tried: so many by hand, so many made."""


def tried() -> list[str]:
    """The pages to try."""
    chosen = []
    for pages in (written(DOCS), made(DOCS)):
        of_files = [page for page in pages if page.startswith(FILES)]
        chosen += [page for page in pages if not page.startswith(FILES)]
        chosen += nlargest(ALIKE, of_files, key=size)
    return sorted(chosen)


def size(page: str) -> int:
    """The bytes of the file that a page shows; none for a page of a room."""
    shown = ROOT / "fx" / page.removeprefix(FILES).replace(".md", ".py")
    return shown.stat().st_size if shown.is_file() else 0


PAGES = [page.removesuffix(".md") for page in tried()]
LONG = ["index", "api/rest", "claims", "differences"]
LONG += ["clients", "files/proxy", "library", "stages/02", "tiny"]
"""The first page, and the longest of each kind."""

PLAIN = "404.html"
"""The page that has the frame of all pages, and one heading in it."""

TIMES = 10
"""How many times as much of the processor a page may take as the plain one.
The seconds are of the machine: the longest page took one on two cores of its
own, and 1.5 on shared ones."""

_LOADED = "return performance.getEntriesByType('navigation')[0].loadEventEnd"

_TO_DARK = "label[title='Switch to dark']"
_SCHEME = "return document.body.dataset.mdColorScheme"

_WIDE = """
return [...document.querySelectorAll('.md-content *')].filter(e =>
  e.getBoundingClientRect().right > innerWidth + 1 &&
  !e.closest('pre, .fx-scroll, .md-typeset__scrollwrap, .highlight'))
  .slice(0, 3).map(e => e.outerHTML.slice(0, 120))
"""


def url_of(page: str) -> str:
    """A page's address below the site."""
    return f"{page}/".removesuffix("index/")


def taken(browser: Browser, address: str) -> float:
    """Open a page; the seconds of the processor until it is there."""
    browser.driver.get("about:blank")
    before = browser.seconds()
    browser.open(address)
    browser.wait(_LOADED)
    return browser.seconds() - before


def faults(browser: Browser) -> Iterator[str]:
    """What is wrong with the page that is open; it is wide and light."""
    browser.run("window.scrollTo(0, document.body.scrollHeight)")
    if not browser.run("return document.title"):
        yield "no title"
    for width in (1400, 400):
        browser.widen(width)
        if browser.run("return innerWidth") != width:
            yield f"the window is not {width} wide"
        if browser.run("return document.documentElement.scrollWidth") > width:
            yield f"{width} wide, it scrolls sideways"
        for element in browser.run(_WIDE):
            yield f"{width} wide, too wide is {element}"
    browser.widen(1400)
    browser.run(
        "document.querySelectorAll('.md-content details')"
        ".forEach(one => { one.open = true })"
    )
    yield from browser.barriers()
    browser.one(_TO_DARK).click()
    if browser.run(_SCHEME) != "slate":
        yield "it does not turn dark"
    browser.wait("return document.getAnimations().length == 0")
    # Only the colours are others in the dark.
    yield from browser.barriers("color-contrast")
    yield from (f"asked for {one}" for one in browser.strangers())
    yield from browser.complaints()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_alone_and_keeps_nobody_out(
    browser: Browser, page: str
) -> None:
    browser.open(url_of(page))
    assert browser.run(_SCHEME) == "default"
    assert not (found := [*faults(browser)]), "\n".join(found)


@pytest.mark.parametrize("page", LONG)
def test_it_is_soon_there(browser: Browser, page: str) -> None:
    plain: list[float] = []
    found: list[float] = []
    while len(found) < 5:
        plain.append(taken(browser, PLAIN))
        found.append(taken(browser, url_of(page)))
        if 0 < min(found) < TIMES * min(plain):
            return
    pytest.fail(f"{min(found)} s, and the plain page {min(plain)}")
