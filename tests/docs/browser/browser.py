"""A headless Chromium, and what the tests ask it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

Answer: TypeAlias = Any
"""What a script of the page returns."""

Scheme: TypeAlias = Literal["light", "dark"]

AXE: Final = (Path(__file__).parent / "axe.min.js").read_text(encoding="utf-8")
CHROMIUM: Final = ("chromium", "chromium-browser", "google-chrome")

_ASK_AXE: Final = """
const done = arguments[arguments.length - 1];
const asked = {resultTypes: ['violations']};
if (arguments[0].length) asked.runOnly = arguments[0];
axe.run(arguments[1], asked).then(found => done(
  found.violations.map(v => ({
    id: v.id, impact: v.impact,
    nodes: v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + ' | ' +
      n.failureSummary),
  }))
)).catch(error => done([{id: String(error), impact: 'critical', nodes: []}]));
"""


def program(*names: str) -> str:
    """The path of the first program that is installed.

    Raises:
        LookupError: none is; says what to install.
    """
    for name in names:
        if path := shutil.which(name):
            return path
    raise LookupError(
        f"{names[0]} is not installed, and the site is tried in it: on Debian "
        "run `apt-get install chromium chromium-driver`"
    )


class Browser:
    """One window; every request it makes is noted."""

    def __init__(self, site: str) -> None:
        """Open the window.

        Args:
            site: the address of the site's root.
        """
        self.site = site
        options = ChromeOptions()
        options.binary_location = program(*CHROMIUM)
        for argument in (
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-dev-shm-usage",
            "--no-first-run",
        ):
            options.add_argument(argument)
        logs = {"performance": "ALL", "browser": "ALL"}
        options.set_capability("goog:loggingPrefs", logs)
        self.driver = Chrome(options, Service(program("chromedriver")))
        self.driver.set_script_timeout(60)
        self.command("Performance.enable")

    def look(self, width: int, scheme: Scheme = "light") -> None:
        """Give the window a width and a colour scheme; nothing is open."""
        self.run("try { sessionStorage.clear() } catch {}")
        self.driver.get("about:blank")
        self.command(
            "Storage.clearDataForOrigin",
            origin=self.site,
            storageTypes="local_storage",
        )
        self.widen(width)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.command("Emulation.setEmulatedMedia", features=[feature])

    def widen(self, width: int) -> None:
        """Give the window a width; the page in it stays open."""
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )

    def command(self, name: str, **parameters: object) -> None:
        """A command of the DevTools protocol."""
        self.driver.execute_cdp_cmd(name, parameters)

    def seconds(self) -> float:
        """The processor time that the pages have taken, for differences."""
        found = self.driver.execute_cdp_cmd("Performance.getMetrics", {})
        values = {one["name"]: one["value"] for one in found["metrics"]}
        return float(values["ThreadTime"])

    def open(self, path: str) -> None:
        """Go to a page of the site, and wait until it is whole.

        On a busy machine `get` returns before the page's scripts have run.
        """
        self.driver.get(self.site + path)
        self.wait("return document.readyState === 'complete'")

    def run(self, script: str, *arguments: object) -> Answer:
        """Run a script in the page."""
        return self.driver.execute_script(script, *arguments)

    def one(self, selector: str) -> WebElement:
        """The first element that a selector finds."""
        return self.driver.find_element("css selector", selector)

    def wait(
        self, script: str, *arguments: object, seconds: float = 10
    ) -> Answer:
        """Wait until a script returns something true."""
        wait = WebDriverWait(self.driver, seconds, poll_frequency=0.02)
        return wait.until(
            lambda driver: driver.execute_script(script, *arguments), script
        )

    def requests(self) -> Iterator[str]:
        """What was asked for since the last call: addresses."""
        for entry in self._log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                yield message["params"]["request"]["url"]

    def _log(self, name: str) -> Answer:
        """A log of the browser since the last call."""
        return self.driver.get_log(name)  # type: ignore[no-untyped-call]

    def strangers(self) -> list[str]:
        """The requests since the last call that left this site."""
        own = (self.site, "data:", "blob:")
        return [url for url in self.requests() if not url.startswith(own)]

    def complaints(self) -> list[str]:
        """Errors of scripts and missing files, since the last call."""
        return [
            entry["message"]
            for entry in self._log("browser")
            if entry["level"] == "SEVERE"
        ]

    def barriers(self, *rules: str, inside: str = ".md-content") -> list[str]:
        """What axe finds in the article that is serious or critical.

        Args:
            rules: the rules to try; all, if none is named.
            inside: what to look at, instead of all of the article.
        """
        self.run(AXE)
        found = self.driver.execute_async_script(_ASK_AXE, rules, inside)
        return [
            f"{one['id']}: {node}"
            for one in found
            if one["impact"] in ("serious", "critical")
            for node in one["nodes"] or [""]
        ]
