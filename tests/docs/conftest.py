"""The files that a page of the site has."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.machinery import playing


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that a page has."""
    folder = tmp_path_factory.mktemp("page")
    for name, text in playing.contents():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder
