"""Figures that one asks: by mouse, by key, by touch, without script."""

from __future__ import annotations

import importlib
import json
import re

import pytest
from selenium.webdriver.common.keys import Keys

from docs.machinery.source import ROOT
from tests.docs.browser.browser import Browser, Scheme

FIGURES = {
    found[1]: path.stem
    for path in sorted((ROOT / "docs" / "stages").glob("*.md"))
    for found in re.finditer(
        r"^/// choose \| docs\.examples\.(\w+)", path.read_text(), re.MULTILINE
    )
}
"""Example -> the stage whose page asks it."""

_SHOWN = """
return [...document.querySelectorAll(arguments[0] + ' .fx-answers > div')]
  .filter(one => getComputedStyle(one).visibility == 'visible')
  .map(one => one.textContent)
"""
_SMALL = """
return [...document.querySelectorAll('.fx-choose label, .fx-filters label')]
  .map(one => one.getBoundingClientRect())
  .filter(box => box.height && (box.height < 24 || box.right > innerWidth))
  .length
"""


def figure(name: str) -> str:
    """The selector of a figure."""
    return f"#{name.replace('_', '-')}"


def outcomes(name: str) -> list[str]:
    """What fx says of each answer, worked out here once more."""
    made = importlib.import_module(f"docs.examples.{name}").choices()
    return [shot["say"] for shot in json.loads(made.json())["shots"]]


def shown(browser: Browser, name: str) -> str:
    """The one answer of a figure that can be seen."""
    (text,) = browser.run(_SHOWN, figure(name))
    return str(text)


def try_by_mouse(browser: Browser, name: str) -> None:
    """Click each answer in turn, last first."""
    said = outcomes(name)
    labels = browser.driver.find_elements(
        "css selector", f"{figure(name)} label"
    )
    assert len(labels) == len(said) >= 4
    assert shown(browser, name).startswith(said[0])
    for label, say in reversed([*zip(labels, said, strict=True)]):
        browser.run("arguments[0].scrollIntoView({block: 'center'})", label)
        label.click()
        assert shown(browser, name).startswith(say)


def test_there_are_four_figures() -> None:
    assert FIGURES == {
        "choose_02": "02",
        "choose_04": "04",
        "choose_07": "07",
        "choose_08": "08",
    }


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("name", FIGURES)
def test_a_click_shows_its_answer(
    browser: Browser, name: str, width: int
) -> None:
    browser.look(width)
    browser.open(f"stages/{FIGURES[name]}/")
    try_by_mouse(browser, name)
    assert browser.run(_SMALL) == 0
    assert browser.run("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", FIGURES)
def test_keys_go_through_the_answers(browser: Browser, name: str) -> None:
    browser.open(f"stages/{FIGURES[name]}/")
    said = outcomes(name)
    browser.run(
        "document.querySelector(arguments[0]).focus()",
        f"{figure(name)} input",
    )
    for say in [*said[1:], said[0]]:
        browser.driver.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
        assert shown(browser, name).startswith(say)


@pytest.mark.parametrize("name", FIGURES)
def test_without_script_the_answers_are_there(
    no_script: Browser, name: str
) -> None:
    no_script.driver.get(f"{no_script.site}stages/{FIGURES[name]}/")
    try_by_mouse(no_script, name)
    text = no_script.driver.page_source
    assert text.count("fx-say") >= len(outcomes(name))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", FIGURES)
def test_nobody_is_kept_out_of_a_figure(
    browser: Browser, name: str, scheme: Scheme
) -> None:
    browser.look(400, scheme)
    browser.open(f"stages/{FIGURES[name]}/")
    found = browser.barriers(inside=figure(name))
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("said", "answer"),
    [("[a, b, AHEAD, c]", "Yes"), ("a b c", "It prints something else")],
)
def test_a_question_compares_the_readers_answer(
    browser: Browser, said: str, answer: str
) -> None:
    browser.open("stages/01/")
    browser.one(".fx-predict textarea").send_keys(said, Keys.ENTER)
    assert browser.one(".fx-predict output").text.startswith(answer)
    assert "a b ahead c" in browser.one(".fx-predict details").text
