"""The playground: programs typed by a reader, in Python in this browser."""

from __future__ import annotations

import pytest

from docs.machinery import running
from tests.docs.browser.browser import Answer, Browser, Scheme
from tests.docs.test_playground import HEAD

SECONDS = 120
"""How long Python may take to load, on a busy machine."""

_OPEN = """
const play = document.querySelectorAll('fx-play')[arguments[0]];
play.scrollIntoView();
play.querySelector('.fx-play-bar button').click();
"""
_RUN = """
const play = document.querySelectorAll('fx-play')[arguments[0]];
play.program = arguments[1];
play.querySelector('.fx-play-bar button').click();
"""
_DONE = """
const play = document.querySelectorAll('fx-play')[arguments[0]];
return play.go && !play.go.disabled
"""
_SAID = """
const play = document.querySelectorAll('fx-play')[arguments[0]];
const frame = play.querySelector('.fx-play-result iframe');
const text = play.querySelector('.fx-play-result').innerText;
return text + (frame ? frame.srcdoc : '')
"""
_LAST = "gm = fx.symbolic_trace(forward)\nprint(gm.graph)\n"


def done(browser: Browser, at: int) -> str:
    """Wait for an answer; what the page shows then."""
    browser.wait(_DONE, at, seconds=SECONDS)
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


def test_an_error_is_shown(play: Browser) -> None:
    text = "def forward(x):\n    return x if x.sum() > 0 else -x"
    play.widen(400)
    said = typed(play, 0, f"{HEAD}{text}\n{_LAST}")
    assert play.one(".fx-play-status").text == "failed, line 4"
    assert inside(play, ".fx-wrong")
    assert "TraceError" in said
    assert "in the expression: x.sum() > 0" in said
    again = typed(play, 0, f"{HEAD}def forward(x):\n    return -x\n{_LAST}")
    assert "TraceError" not in again
    assert "operator.neg" in again


_INSIDE = """
const [head, {top, bottom}] = ['.md-header', arguments[0]].map(
  (one) => document.querySelector(one).getBoundingClientRect());
return top >= head.bottom && bottom <= innerHeight
"""


def inside(browser: Browser, selector: str) -> bool:
    """Whether all of an element is in view."""
    return bool(browser.run(_INSIDE, selector))


def test_a_failed_load_is_told_and_tried_again(browser: Browser) -> None:
    browser.open("play/")
    browser.command("Network.setBlockedURLs", urls=["*/fx.zip"])
    browser.run(_OPEN, 0)
    assert "Python could not be loaded" in done(browser, 0)
    browser.command("Network.setBlockedURLs", urls=[])
    assert "2" in typed(browser, 0, "print(1 + 1)")


_PRESS = """
[...document.querySelectorAll('.fx-play-bar button')]
  .find(one => one.textContent.startsWith(arguments[0])).click()
"""
_CHOOSE = """
const made = document.querySelector('.fx-play-bar select');
made.selectedIndex = [...made].findIndex(one => one.text === arguments[0]);
made.dispatchEvent(new Event('change'));
"""
_SHOWN = """
return document.querySelector('fx-play').innerText.includes(arguments[0])
"""


def in_frame(browser: Browser, script: str) -> Answer:
    """What a script gives in the viewer."""
    driver = browser.driver
    driver.switch_to.frame(browser.one(".fx-play-result iframe"))
    try:
        return browser.run(script)
    finally:
        driver.switch_to.default_content()


def test_the_graph_opens_in_the_viewer(play: Browser) -> None:
    rows = in_frame(
        play,
        "return [...document.querySelectorAll('.row')].map(r => r.innerText)",
    )
    assert [row for row in rows if "add" in row and "f32[2,3]" in row]
    play.run(_CHOOSE, "A pass of your own")
    done(play, 0)
    marks = in_frame(
        play,
        "return [...document.querySelectorAll('[data-mark]')].length",
    )
    assert marks == 2


def test_a_link_has_the_program(play: Browser) -> None:
    program = "import fx\nprint('größer: 1 + 1')  # a line of mine\n"
    typed(play, 0, program)
    play.run(_PRESS, "Copy a link")
    play.wait("return location.hash.startsWith('#program=')")
    address = play.driver.current_url
    play.driver.get("about:blank")
    assert not play.strangers()
    play.driver.get(address)
    play.wait(_SHOWN, "a line of mine")
    asked = [*play.requests()]
    assert not [url for url in asked if ".wasm" in url or "program=" in url]
    # The theme writes the heading that is in view into the address.
    play.run("history.replaceState({}, '', '#what'); scrollBy(0, 300)")
    play.wait("return location.href === arguments[0]", address)
    play.run(_OPEN, 0)
    assert "größer: 1 + 1" in done(play, 0)
    typed(play, 0, "print('another')")
    assert "program=" not in play.driver.current_url
    play.driver.refresh()
    play.wait(_SHOWN, "another")
    play.driver.get("about:blank")
    play.driver.get(address)
    play.wait(_SHOWN, "a line of mine")
    play.run(_OPEN, 0)
    done(play, 0)
    play.run(_CHOOSE, "Yours, 1")
    assert "another" in done(play, 0)
    typed(play, 0, "print('a third')")
    play.run(_CHOOSE, "A loop over layers")
    done(play, 0)
    play.run(_CHOOSE, "Yours, 2")
    assert "a third" in done(play, 0)
    play.driver.get("about:blank")
    play.driver.get(address[:-9])
    play.wait(_SHOWN, "The link is damaged")


def test_what_was_made_is_in_view(play: Browser) -> None:
    assert inside(play, ".fx-play-result iframe")
    assert "fx.show(model, input)" in typed(play, 0, "x = 1")
    assert inside(play, ".fx-play-bar")


def test_a_program_can_be_stopped(play: Browser) -> None:
    endless = "while True:\n    pass\n"
    play.run(_RUN, 0, endless)
    play.run(_PRESS, "Stop")
    assert "Stopped." in done(play, 0)
    assert "2" in typed(play, 0, "print(1 + 1)")


def test_the_editor_has_colours_and_line_numbers(play: Browser) -> None:
    play.wait("return document.querySelector('.CodeMirror-linenumber')")
    assert play.run("return document.querySelectorAll('.cm-keyword').length")


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
    assert not browser.one(".md-top").is_displayed()


def test_without_scripts_the_recorded_run_is_there(no_script: Browser) -> None:
    no_script.open("play/")
    recorded = no_script.one(".fx-recorded").text
    assert "call_function[target=torch.relu]" in recorded
