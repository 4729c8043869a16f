"""The stepper: by mouse, by keyboard, after navigation, without script."""

from __future__ import annotations

from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from docs.machinery.source import ROOT
from tests.docs.browser.browser import Browser

DOCS = ROOT / "docs"

PAGE = "stages/01/"

_SHOWN = """
return [...document.querySelectorAll('fx-trace .fx-states > li')]
  .map((one, k) => getComputedStyle(one).visibility == 'visible' ? k : -1)
  .filter(k => k >= 0)
"""
_ALL_LIVE = """
const films = document.querySelectorAll('fx-trace');
return document.querySelectorAll('fx-trace.fx-live > .fx-bar').length ==
  films.length ? films.length : 0
"""
_LIVE = """
return document.querySelector(
  `fx-trace.fx-live[aria-label='Steps of ${arguments[0]}'] > .fx-bar`)
"""
_PLAY = """
const film = document.querySelectorAll('fx-trace')[arguments[0]];
const states = [...film.querySelectorAll('.fx-states > li')];
const [back, next] = film.querySelectorAll('.fx-bar button');
while (!back.disabled) back.click();
return states.filter((state, k) => {
  const alone = states.every((one, n) =>
    (getComputedStyle(one).visibility == 'visible') == (n == k));
  next.click();
  return !alone || !state.querySelector('.fx-say').textContent.trim();
}).map(state => state.textContent.slice(0, 80))
"""
_SAID = """
return document.querySelector('fx-trace input').getAttribute('aria-valuetext')
"""


def shown(browser: Browser) -> list[int]:
    """Which states of the page's film can be seen."""
    found: list[int] = browser.run(_SHOWN)
    return found


def count(browser: Browser) -> int:
    """How many states the film has."""
    found: int = browser.run(
        "return document.querySelectorAll('fx-trace .fx-states > li').length"
    )
    return found


def press(browser: Browser, word: str) -> None:
    """Click on a button of the stepper."""
    (button,) = [
        one
        for one in browser.driver.find_elements(
            "css selector", "fx-trace .fx-bar button"
        )
        if one.text.lower() == word
    ]
    browser.run("arguments[0].scrollIntoView({block: 'center'})", button)
    button.click()


def test_the_mouse_steps_forth_and_back(browser: Browser) -> None:
    browser.open(PAGE)
    assert shown(browser) == [0]
    press(browser, "next")
    press(browser, "next")
    assert shown(browser) == [2]
    press(browser, "back")
    assert shown(browser) == [1]


def test_the_ends_are_ends(browser: Browser) -> None:
    browser.open(PAGE)
    assert not browser.one("fx-trace button:first-child").is_enabled()
    last = count(browser) - 1
    for _ in range(last):
        press(browser, "next")
    assert shown(browser) == [last]
    assert browser.run(
        "return document.querySelectorAll('fx-trace button')[1].disabled"
    )


def test_the_keyboard_steps_on_the_slider(browser: Browser) -> None:
    browser.open(PAGE)
    slider = browser.one("fx-trace input[type=range]")
    for keys, expected in (
        (Keys.ARROW_RIGHT, 1),
        (Keys.ARROW_RIGHT, 2),
        (Keys.ARROW_LEFT, 1),
        (Keys.END, count(browser) - 1),
        (Keys.HOME, 0),
    ):
        slider.send_keys(keys)
        assert shown(browser) == [expected]


def test_the_keyboard_steps_on_the_buttons(browser: Browser) -> None:
    browser.open(PAGE)
    button = browser.one("fx-trace button:nth-of-type(2)")
    button.send_keys(Keys.ENTER)
    button.send_keys(Keys.SPACE)
    assert shown(browser) == [2]
    button.send_keys(Keys.ARROW_LEFT)
    assert shown(browser) == [1]


_PANELS = """
return ['.fx-src', '.fx-nodes', '.fx-out'].map(one => document
  .querySelector('fx-trace li.fx-now ' + one).getBoundingClientRect().bottom)
"""


_PROGRAM = """
return document.querySelector('article .highlight').getBoundingClientRect().top
"""


@pytest.mark.parametrize(("width", "screens"), [(1400, 3), (400, 5)])
def test_the_home_page_shows_a_program_and_then_the_film(
    browser: Browser, width: int, screens: int
) -> None:
    """The program without scrolling; the film's panels are at most 900 high."""
    browser.look(width)
    browser.open("")
    assert browser.run(_PROGRAM) < 900
    assert shown(browser) == [0]
    assert max(browser.run(_PANELS)) <= screens * 900
    press(browser, "next")
    assert shown(browser) == [1]


def test_every_step_is_said(browser: Browser) -> None:
    browser.open(PAGE)
    total = count(browser)
    press(browser, "next")
    said = browser.run(
        "return document.querySelector('fx-trace .fx-now .fx-say').textContent"
    )
    assert browser.run(_SAID) == f"2 of {total}: {said}"
    aloud = browser.run(
        "return document.querySelector('fx-trace output').textContent"
    )
    assert aloud == f"2 of {total}: {said}"


def test_nothing_jumps_from_step_to_step(browser: Browser) -> None:
    browser.open(PAGE)
    height = "return document.querySelector('fx-trace').offsetHeight"
    before = browser.run(height)
    for _ in range(count(browser) - 1):
        press(browser, "next")
        assert browser.run(height) == before


def test_it_works_after_instant_navigation_and_back(browser: Browser) -> None:
    browser.open("")
    browser.run("window.marker = 'here'")
    link = f"document.querySelector('.md-content a[href$=\"{PAGE}\"]')"
    browser.wait("return document.readyState == 'complete'")
    browser.run(f"{link}.click()")
    browser.wait(_LIVE, "steps_01")
    assert browser.run("return window.marker") == "here", "a full page load"
    press(browser, "next")
    assert shown(browser) == [1]
    browser.driver.back()
    browser.wait(_LIVE, "steps_home")
    browser.driver.forward()
    browser.wait(_LIVE, "steps_01")
    assert browser.run("return window.marker") == "here", "a full page load"
    press(browser, "next")
    assert len(shown(browser)) == 1
    assert browser.run(
        "return document.querySelectorAll('fx-trace .fx-bar').length"
    ) == browser.run("return document.querySelectorAll('fx-trace').length")


def test_without_script_all_states_are_there(no_script: Browser) -> None:
    no_script.driver.get(no_script.site + PAGE)
    assert shown(no_script) == list(range(count(no_script)))
    assert count(no_script) > 3
    assert not no_script.driver.find_elements("css selector", ".fx-bar")
    tops = no_script.run(
        "return [...document.querySelectorAll('fx-trace .fx-states > li')]"
        ".map(one => one.getBoundingClientRect().top)"
    )
    assert tops == sorted(set(tops)), "they stand below each other"


@pytest.mark.parametrize("page", sorted((DOCS / "stages").glob("*.md")))
def test_every_film_plays_to_its_end(browser: Browser, page: Path) -> None:
    browser.open(f"stages/{page.stem}/")
    films = browser.wait(_ALL_LIVE)
    assert films > 0
    for film in range(films):
        wrong = browser.run(_PLAY, film)
        assert wrong == [], f"film {film} of {page.stem}"
    assert browser.complaints() == []
