"""`python -m stages read`: the site, at the page that was named."""

from __future__ import annotations

import argparse
import importlib.util
import io
import subprocess
import webbrowser

import pytest
from rich.console import Console

from stages import cli


def test_a_page_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(LookupError, match="why"):
        cli.page_of("nothing")
    with pytest.raises(LookupError):
        cli.page_of("../README")


def test_without_mkdocs_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        RuntimeError, match=r"(?s)pip install .*docs/stages/03\.md"
    ):
        cli.reading(argparse.Namespace(page="3"))


class Server:
    """A server that runs until Ctrl-C."""

    def __init__(self, command: list[str], **options: object) -> None:
        assert command[1:4] == ["-m", "mkdocs", "serve"]
        self.is_ended = False

    def poll(self) -> None:
        return None

    def terminate(self) -> None:
        self.is_ended = True

    def wait(self) -> int:
        if not self.is_ended:
            raise KeyboardInterrupt
        return 0


@pytest.mark.parametrize("is_seen", [True, False])
def test_the_page_is_opened_or_its_address_printed(
    is_seen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    out = io.StringIO()
    monkeypatch.setattr(subprocess, "Popen", Server)
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr(cli, "has_windows", lambda: is_seen)
    monkeypatch.setattr(cli, "_answers", lambda port: True)
    monkeypatch.setattr(cli, "CONSOLE", Console(file=out, width=100))
    assert cli.main(["read", "03"]) == 130
    (address,) = [w for w in out.getvalue().split() if w[:4] == "http"]
    assert address.endswith("/stages/03")
    assert opened == [address] * is_seen
