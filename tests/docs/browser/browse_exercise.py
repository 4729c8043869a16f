"""The exercises of three stages, written and checked in this browser."""

from __future__ import annotations

import json

import pytest

from tests.docs.browser.browse_play import SECONDS, inside
from tests.docs.browser.browser import Browser
from tests.docs.test_exercise import TESTS, WRONG, version, wrong

_DONE = """
const box = document.querySelector('fx-exercise');
return box.go && !box.go.disabled
"""
_VERDICT = """
const {status, signs} = document.querySelector('fx-exercise');
const kinds = [...signs.children].map(one => one.dataset.kind);
return [status.dataset.kind, ...new Set(kinds)]
"""
_CLICK = """
const {signs, mirror} = document.querySelector('fx-exercise');
return [...signs.querySelectorAll('button')].map(one => (
  one.click(), [one.textContent, mirror.getLine(mirror.getCursor().line)]))
"""
_OPEN = """
document.querySelector('fx-exercise .fx-play-bar button').click()
"""
_FIRST = """
const {mirror} = document.querySelector('fx-exercise');
const top = mirror.lineAtHeight(mirror.getScrollInfo().top, 'local');
return mirror.getRange({line: top, ch: 0}, {line: top + 22, ch: 0})
"""
_OTHER_TAB = """
const box = document.querySelector('fx-exercise');
localStorage.setItem(`fx/${box.name}`, 'by another tab');
box.run();
return localStorage.getItem(`fx/${box.name}`)
"""
_HINT = "fx-exercise details:nth-of-type(3) summary"
_TYPE = """
const box = document.querySelector('fx-exercise');
const chooser = box.querySelector('select');
for (const [name, text] of Object.entries(JSON.parse(arguments[0]))) {
  chooser.value = name;
  chooser.dispatchEvent(new Event('change'));
  box.program = text;
}
box.run();
"""


def said(browser: Browser) -> str:
    """Wait for the check; what it said."""
    browser.wait(_DONE, seconds=SECONDS)
    return browser.one("fx-exercise .fx-play-result").text


@pytest.mark.parametrize("stage", TESTS)
def test_a_stage_is_written_in_the_page(browser: Browser, stage: str) -> None:
    browser.open(f"stages/{stage}/")
    browser.run(_OPEN)
    assert f"{TESTS[stage]} to write" in said(browser)
    assert browser.one(_HINT).text.startswith("Hint 3 of 3 for ")
    assert "raise NotImplementedError" in browser.run(_FIRST)
    assert browser.run(_VERDICT) == ["", ""]
    browser.run(_TYPE, json.dumps(wrong(stage)))
    assert WRONG[stage][2] in said(browser).replace("\n", " ")
    assert {*browser.run(_VERDICT)} - {""} == {"failed", "passed"}
    assert inside(browser, ".fx-play-status")
    assert inside(browser, ".fx-play-said")
    places = dict(browser.run(_CLICK))
    assert len(places) > 5
    for name, line in places.items():
        assert f"def {name.rpartition('.')[2]}(" in line
    browser.run(_TYPE, json.dumps(version(stage)))
    assert f"{TESTS[stage]} passed" in said(browser)
    assert browser.run(_VERDICT) == ["passed", "passed"]
    assert "Go on to stage" in said(browser)
    browser.open(f"stages/{stage}/")
    browser.run(_OPEN)
    assert f"{TESTS[stage]} passed" in said(browser)
    assert browser.run(_OTHER_TAB) == "by another tab"
    assert browser.complaints() == []
    assert browser.strangers() == []


def test_without_scripts_the_terminal_is_named(no_script: Browser) -> None:
    no_script.open("stages/01/")
    assert "python -m stages watch 01" in no_script.one("fx-exercise").text
