"""`python -m stages read 03`: a page of the site, in a browser."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import time
import webbrowser
from pathlib import Path
from typing import Final

from rich.console import Console

from stages.manifest import ROOT, stages

DOCS: Final = ROOT / "docs"


def page_of(name: str) -> Path:
    """The page of a stage, or of another name: `3`, `views`, `capstones/int8`.

    Raises:
        LookupError: there is no such page.
    """
    last = name.removeprefix("stages/").removesuffix(".md").rstrip("/")
    if last.isdecimal() and int(last) in stages():
        return DOCS / "stages" / f"{int(last):02d}.md"
    for folder in (DOCS, DOCS / "capstones"):
        path = folder / f"{name.removesuffix('.md')}.md"
        if path.is_file() and path.resolve().is_relative_to(DOCS):
            return path
    known = ", ".join(sorted(path.stem for path in DOCS.glob("*.md")))
    raise LookupError(
        f"there is no page {name!r}. A stage is a number, a capstone is "
        f"`gradient`, and the other pages are {known}"
    )


def read(path: Path, console: Console) -> int:
    """Serve the site until Ctrl-C, and open a page of it.

    Args:
        path: of the page.
        console: where the address is printed.

    Raises:
        RuntimeError: MkDocs is not installed.
    """
    place = path.relative_to(DOCS).with_suffix("").as_posix()
    if importlib.util.find_spec("mkdocs") is None:
        raise RuntimeError(
            f"MkDocs shows the pages, and is not installed:\n"
            f"    pip install -e '.[course,docs]'\n"
            f"The text of this page is in docs/{place}.md."
        )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    server = subprocess.Popen(
        [
            *(sys.executable, "-m", "mkdocs", "serve", "--quiet"),
            *("--no-strict", "--no-livereload", "-a", f"127.0.0.1:{port}"),
        ],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "SITE_URL": ""},
    )
    console.print("Building the site, which takes up to a minute …")
    try:
        while server.poll() is None and not _answers(port):
            time.sleep(0.2)
        if server.poll() is None:
            address = f"http://127.0.0.1:{port}/{place.removesuffix('index')}"
            console.print(f"{address}    (Ctrl-C ends)")
            if has_browser():
                webbrowser.open(address)
        return server.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        server.terminate()
        server.wait()


def _answers(port: int) -> bool:
    """Whether something on this machine listens at a port."""
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


def has_browser() -> bool:
    """Whether a browser with windows can be opened from here."""
    if sys.platform.startswith("linux"):
        seen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
        if not seen:
            return False
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True
