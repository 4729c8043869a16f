"""The playground: programs typed by a reader, in Python in this browser."""

from __future__ import annotations

import pytest
from selenium.webdriver.support.ui import WebDriverWait

from docs.machinery import running
from tests.docs.browser.browser import Answer, Browser, Scheme
from tests.docs.test_playground import HEAD, TEN, solution

SECONDS = 120
"""How long Python may take to load, on a busy machine."""

_OPEN = """
const play = document.querySelectorAll('fx-play')[arguments[0]];
const folded = play.closest('details');
if (folded) folded.open = true;
play.scrollIntoView();
play.querySelector('.fx-play-bar button').click();
"""
_RUN = """
const play = document.querySelectorAll('fx-play')[arguments[0]];
play.querySelector('textarea').value = arguments[1];
play.querySelector('.fx-play-bar button').click();
"""
_DONE = """
const play = document.querySelectorAll('fx-play')[arguments[0]];
return play.querySelector('.fx-play-status').textContent.startsWith('done')
"""
_SAID = """
const play = document.querySelectorAll('fx-play')[arguments[0]];
return play.querySelector('.fx-play-result').innerText
"""
_LAST = "gm = fx.symbolic_trace(forward)\nprint(gm.graph)\n"


def done(browser: Browser, at: int) -> str:
    """Wait for an answer; what the page shows then."""
    wait = WebDriverWait(browser.driver, SECONDS, poll_frequency=0.1)
    wait.until(lambda _: browser.run(_DONE, at))
    return str(browser.run(_SAID, at))


def typed(browser: Browser, at: int, program: str) -> str:
    """Type a program and run it; what the page shows then."""
    browser.run(_RUN, at, program)
    return done(browser, at)


@pytest.fixture
def play(browser: Browser) -> Browser:
    """The page, with Python loaded."""
    browser.open("play/")
    browser.run(_OPEN, 0)
    done(browser, 0)
    return browser


def test_nothing_is_loaded_before_the_click(browser: Browser) -> None:
    browser.open("play/")
    assert not [url for url in browser.requests() if ".wasm" in url]
    text = browser.one(".fx-play-bar button").text
    assert "14 MB" in text


def test_the_button_is_above_what_was_printed(browser: Browser) -> None:
    browser.open("play/")
    button, printed = browser.one(".fx-play-bar"), browser.one(".fx-recorded")
    assert button.location["y"] < printed.location["y"]


def test_it_prints_what_the_page_had_recorded(play: Browser) -> None:
    for hidden in (".highlight", ".fx-recorded"):
        assert not play.one(f"fx-play {hidden}").is_displayed()
    recorded = running.printed("docs.examples.play_forward")
    assert recorded.strip() in str(play.run(_SAID, 0)).replace("\xa0", " ")
    assert play.strangers() == []
    assert play.complaints() == []


def test_five_functions_are_typed(play: Browser) -> None:
    said = ""
    for name, text in [*TEN.items()][:5]:
        said = typed(play, 0, f"{HEAD}{text}\n{_LAST}")
        assert "placeholder[target=x]" in said, name
        assert "def forward(self, x, y)" in said, name
    assert "torch.cat([x, y], dim = 1)" in said
    assert play.strangers() == []


def test_an_error_is_shown(play: Browser) -> None:
    text = "def forward(x):\n    return x if x.sum() > 0 else -x"
    said = typed(play, 0, f"{HEAD}{text}\n{_LAST}")
    assert "TraceError" in said
    assert "in the expression: x.sum() > 0" in said
    again = typed(play, 0, f"{HEAD}def forward(x):\n    return -x\n{_LAST}")
    assert "TraceError" not in again
    assert "operator.neg" in again


_STEP = """
const range = document.querySelector('.fx-play-result input[type=range]');
range.value = arguments[0];
range.dispatchEvent(new Event('input'));
return document.querySelectorAll('.fx-play-result .fx-later').length
"""


def test_the_slider_goes_back(play: Browser) -> None:
    assert play.run(_STEP, 1) == 5
    assert play.run(_STEP, 6) == 0


def checked(browser: Browser, task: str, at: int) -> None:
    """A task is not fulfilled at first, and then it is."""
    browser.open(f"stages/{task[:2]}/")
    browser.run(_OPEN, at)
    assert "Not yet: " in done(browser, at)
    assert "Right: " in typed(browser, at, solution(task))


@pytest.mark.parametrize("task", ["01-insert", "02-replace", "03-reflected"])
def test_a_task_is_checked_in_the_page(browser: Browser, task: str) -> None:
    checked(browser, task, 0)
    assert browser.complaints() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_editor_keeps_nobody_out(browser: Browser, scheme: Scheme) -> None:
    browser.look(1400, scheme)
    browser.open("play/")
    browser.run(_OPEN, 0)
    done(browser, 0)
    assert not (found := browser.barriers()), "\n".join(found)


def test_the_editor_fits_a_narrow_window(browser: Browser) -> None:
    browser.look(400)
    browser.open("play/")
    browser.run(_OPEN, 0)
    done(browser, 0)
    wide: Answer = browser.run("return document.documentElement.scrollWidth")
    assert wide <= 400


def test_without_scripts_the_recorded_run_is_there(no_script: Browser) -> None:
    no_script.open("play/")
    recorded = no_script.one(".fx-recorded").text
    assert "call_function[target=torch.relu]" in recorded
