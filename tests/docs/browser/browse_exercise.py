"""The exercises of stage 01, written and checked in this browser."""

from __future__ import annotations

import json

from selenium.webdriver.support.ui import WebDriverWait

from docs.machinery.source import ROOT
from tests.docs.browser.browse_play import SECONDS
from tests.docs.browser.browser import Browser

_DONE = """
const box = document.querySelector('fx-exercise');
return box.querySelector('.fx-play-status').textContent === 'done'
"""
_OPEN = """
document.querySelector('fx-exercise .fx-play-bar button').click()
"""
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
    wait = WebDriverWait(browser.driver, SECONDS, poll_frequency=0.1)
    wait.until(lambda _: browser.run(_DONE))
    return browser.one("fx-exercise .fx-play-result").text


def test_stage_01_is_written_in_the_page(browser: Browser) -> None:
    browser.open("stages/01/")
    browser.run(_OPEN)
    assert "75 to write" in said(browser)
    parts = ("linked_list/linked_list.py", "linked_list/namespace.py")
    right = {one: (ROOT / "fx" / one).read_text("utf-8") for one in parts}
    wrong = right[parts[0]].replace("self._len -= 1", "pass")
    browser.run(_TYPE, json.dumps({**right, parts[0]: wrong}))
    assert "len() must be 2" in said(browser)
    browser.run(_TYPE, json.dumps(right))
    assert "75 passed" in said(browser)
    browser.open("stages/01/")
    browser.run(_OPEN)
    assert "75 passed" in said(browser)
    assert browser.complaints() == []
    assert browser.strangers() == []
