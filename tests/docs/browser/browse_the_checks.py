"""The checks of the other files can fail: each is shown what is wrong."""

from __future__ import annotations

import pytest

from tests.docs.browser.browse_pages import _WIDE
from tests.docs.browser.browser import Browser, program

_ADD = """
const made = document.createElement(arguments[0]);
Object.assign(made.style, arguments[1]);
made.textContent = arguments[2];
document.querySelector('.md-content__inner').append(made);
"""


def test_a_request_that_leaves_is_seen(browser: Browser) -> None:
    browser.open("")
    assert browser.strangers() == []
    address = "http://localhost:9/pixel.png"
    browser.run("new Image().src = arguments[0]", address)
    browser.wait(
        "return performance.getEntriesByName(arguments[0]).length", address
    )
    assert address in browser.strangers()


def test_a_missing_file_and_an_error_of_a_script_are_seen(
    browser: Browser,
) -> None:
    browser.open("")
    browser.run(
        "const made = document.createElement('script');"
        "made.src = 'nowhere.js'; made.onerror = () => { window.gone = 1 };"
        "document.head.append(made)"
    )
    browser.wait("return window.gone")
    assert any("nowhere.js" in one for one in browser.complaints())


def test_what_is_too_wide_is_seen(browser: Browser) -> None:
    browser.look(400)
    browser.open("")
    assert browser.run(_WIDE) == []
    browser.run(_ADD, "div", {"width": "600px"}, "wide")
    assert browser.run(_WIDE)


def test_what_one_cannot_read_is_seen(browser: Browser) -> None:
    browser.open("")
    assert browser.barriers() == []
    browser.run(_ADD, "p", {"color": "#bbb", "background": "#fff"}, "pale")
    assert any("color-contrast" in one for one in browser.barriers())


def test_a_browser_that_is_missing_is_asked_for() -> None:
    with pytest.raises(LookupError, match="apt-get install chromium"):
        program("no-such-browser")
