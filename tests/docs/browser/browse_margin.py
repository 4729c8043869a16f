"""What the documents say: opened in the margin, filtered, as cards."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.keys import Keys

from docs.machinery.claimed import ledger
from tests.docs.browser.browser import Browser

PAGE = "files/linked_list/linked_list/"
MARK = "[data-definition='fx.linked_list.linked_list.Link.prepend']"

_VISIBLE = """
return [...document.querySelectorAll(arguments[0])]
  .filter(one => one.checkVisibility()).length
"""
_PLACES = """
const mark = document.querySelector(arguments[0]);
const box = mark.parentElement.querySelector('.fx-box');
return [mark.querySelector('summary').getBoundingClientRect().left,
  box.getBoundingClientRect().left]
"""


def visible(browser: Browser, selector: str) -> int:
    """How many elements can be seen."""
    found: int = browser.run(_VISIBLE, selector)
    return found


@pytest.mark.parametrize("width", [400, 1000, 1400])
def test_a_mark_is_in_the_margin_and_opens_in_place(
    no_script: Browser, width: int
) -> None:
    no_script.look(width)
    no_script.driver.get(no_script.site + PAGE)
    mark, code = no_script.run(_PLACES, MARK)
    assert mark < code if width > 400 else mark == code
    claim = f"{MARK} .fx-claim"
    assert not visible(no_script, claim)
    summary = no_script.one(f"{MARK} > summary")
    no_script.run("arguments[0].scrollIntoView({block: 'center'})", summary)
    summary.click()
    assert visible(no_script, claim) == 1
    summary.send_keys(Keys.ENTER)
    assert not visible(no_script, claim)


def test_claims_are_filtered_by_verdict_and_document(browser: Browser) -> None:
    browser.open("claims/")
    every = ledger().claims.values()
    assert visible(browser, ".fx-claim") == len(every)
    browser.one("label:has(#show-verdict-changed)").click()
    changed = [claim for claim in every if claim.holds == "changed"]
    assert visible(browser, ".fx-claim") == len(changed)
    browser.one("label:has(#show-document-002)").click()
    left = [
        claim
        for claim in changed
        if any(at.document == "002" for at in ledger().cited[claim.id])
    ]
    assert visible(browser, ".fx-claim") == len(left) > 0
    assert visible(browser, "h2") < 8


def test_differences_are_cards_without_a_lost_column(browser: Browser) -> None:
    browser.look(400)
    browser.open("differences/")
    browser.one("label:has(#show-met-all)").click()
    cells = "td[data-label='torch.fx'], td[data-label='fx']"
    narrow = browser.run(
        "return [...document.querySelectorAll(arguments[0])].filter(one => "
        "{const box = one.getBoundingClientRect(); "
        "return box.width < 250 || box.right > innerWidth}).length",
        cells,
    )
    assert narrow == 0
    assert visible(browser, cells) > 200
    rows = visible(browser, "tr[data-met]")
    browser.one("label:has(#show-met-often)").click()
    assert 0 < visible(browser, "tr[data-met]") < rows / 2


def test_the_chart_of_speed_is_what_one_sees_first(browser: Browser) -> None:
    browser.open("speed/")
    top = browser.run(
        "return document.querySelector('.fx-chart svg')"
        ".getBoundingClientRect().top"
    )
    assert top < 500
