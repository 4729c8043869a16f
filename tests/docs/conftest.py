"""The files that a page of the site has."""

from __future__ import annotations

import json
import subprocess
import sys
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


def printed_in_page(page: Path, code: str, value: object) -> str:
    """What code prints where no torch is installed; it reads JSON."""
    said = subprocess.run(
        [
            *(sys.executable, "-I", "-S", "-c"),
            "import json, sys; sys.path.insert(0, sys.argv[1])\n" + code,
            str(page),
        ],
        input=json.dumps(value),
        capture_output=True,
        text=True,
        check=True,
    )
    assert not said.stderr
    return said.stdout
