"""Checks what a reader has written of stage 01, as the terminal does."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Final

OPTIONS: Final = (
    *("stages/01", "-p", "stages.plugin", "-q", "-c", os.devnull),
    *("--rootdir=.", "--color=no", "--assert=plain", "--capture=sys"),
    *("-p", "no:cacheprovider", "-p", "no:faulthandler"),
)
"""pytest's command line."""

COMMAND: Final = " python -m stages "
"""In a line that a terminal needs, and a page does not."""

HOME: Final = str(Path(__file__).resolve().parents[1])
"""Where torch is in a page, which finds it from the working folder alone."""


def check_page(files: str) -> str:
    """What a page shows of a check; the files are JSON."""
    return check(json.loads(files), Path("/course"))


def check(files: Mapping[str, str], root: Path) -> str:
    """What the check of stage 01 says about a reader's files.

    Args:
        files: their texts, by their paths below `exercises/fx`.
        root: the folder with stages/, fx/ and exercises/, which is changed.
    """
    for name, text in files.items():
        path = root / "exercises" / "fx" / name
        path.write_text(text, encoding="utf-8")
    said = io.StringIO()
    told = (contextlib.redirect_stdout(said), contextlib.redirect_stderr(said))
    with _only(root), told[0], told[1]:
        importlib.import_module("pytest").main([*OPTIONS])
    lines = said.getvalue().strip().splitlines()
    return "\n".join(one for one in lines if COMMAND not in one)


@contextlib.contextmanager
def _only(root: Path) -> Iterator[None]:
    """Import `fx`, `stages` and tests from this folder alone, and anew."""
    kept = _taken()
    before, paths = os.getcwd(), [*sys.path]
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    sys.path[:0] = [str(root), HOME]
    importlib.invalidate_caches()
    os.chdir(root)
    try:
        yield
    finally:
        os.chdir(before)
        sys.path[:] = paths
        _taken()
        sys.modules.update(kept)


def _taken() -> dict[str, ModuleType]:
    """Take the modules out that a check imports for itself."""
    names = [
        name
        for name in sys.modules
        if name.partition(".")[0] in ("fx", "stages")
        or name.startswith("test_")
    ]
    return {name: sys.modules.pop(name) for name in names}
