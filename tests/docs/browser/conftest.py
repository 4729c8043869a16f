"""The site, built for its address, served, and a browser to look at it."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from docs.machinery.source import ROOT
from tests.docs.browser.browser import Browser
from tests.docs.site import build


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and does not tell."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the site.

    It is built for that very address: instant navigation works only where
    the site is served from its `site_url`.
    """
    folder = tmp_path_factory.mktemp("site")
    handler = partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        url = f"http://127.0.0.1:{server.server_port}/"
        try:
            build(ROOT / "mkdocs.yml", folder, url)
        except subprocess.CalledProcessError as error:
            pytest.fail(error.output)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield url
        server.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def window(site: str) -> Iterator[Browser]:
    """One window for all tests: to open one takes a second."""
    try:
        opened = Browser(site)
    except LookupError as error:
        pytest.fail(str(error))
    yield opened
    opened.driver.quit()


@pytest.fixture
def browser(window: Browser) -> Browser:
    """The window, wide and light, with nothing noted."""
    window.look(1400)
    window.strangers()
    window.complaints()
    return window


@pytest.fixture
def no_script(browser: Browser) -> Iterator[Browser]:
    """The window, in which pages cannot run scripts."""
    browser.command("Emulation.setScriptExecutionDisabled", value=True)
    yield browser
    browser.command("Emulation.setScriptExecutionDisabled", value=False)
