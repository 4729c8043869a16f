"""Every page: alone on this machine, fast, readable, at any width."""

from __future__ import annotations

import pytest

from docs.machinery.source import ROOT
from tests.docs.browser.browser import Browser, Scheme

DOCS = ROOT / "docs"
PAGES = sorted(
    path.relative_to(DOCS).with_suffix("").as_posix()
    for path in DOCS.rglob("*.md")
)
SECONDS = 2.0
"""The processor time that a page may take: other programs do not count, but a
core that is shared is slower: there the longest page has taken 1.4 s."""

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


@pytest.mark.parametrize("page", PAGES)
def test_it_is_soon_there(browser: Browser, page: str) -> None:
    taken: list[float] = []
    while len(taken) < 5 and min(taken, default=SECONDS) >= SECONDS:
        browser.driver.get("about:blank")
        before = browser.seconds()
        browser.open(url_of(page))
        browser.wait(_LOADED)
        taken.append(browser.seconds() - before)
    assert 0 < min(taken) < SECONDS, taken


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
