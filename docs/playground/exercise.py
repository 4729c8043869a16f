"""Checks what a reader has written of a stage, as the terminal does."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Final, NamedTuple

OPTIONS: Final = (
    *("-p", "stages.plugin", "-q", "-c", os.devnull),
    *("--rootdir=.", "--color=no", "--assert=plain", "--capture=sys"),
    *("-p", "no:cacheprovider", "-p", "no:faulthandler"),
)
"""pytest's command line, after the stage."""

LEFT_OUT: Final = (
    "stages/03/test_torch_functions.py::"
    "test_a_script_method_is_called_on_its_owner"
)
"""It needs TorchScript; the page of its stage says so."""

COMMAND: Final = " python -m stages "
"""In a line that a terminal needs, and a page does not."""

NEXT: Final = re.compile(r"^next: (?:write|fix) ([\w.]+) (?:\(|of|in)", re.M)
"""The line that names the function to go on with."""

HOME: Final = str(Path(__file__).resolve().parents[1])
"""Where torch is in a page, which finds it from the working folder alone."""


class Checked(NamedTuple):
    """What is said about a reader's files, and how to go on."""

    printed: str
    hints: tuple[str, ...]
    signs: tuple[tuple[str, str], ...]
    """Each function of the stage with its sign in the terminal."""


def check_page(stage: str, files: str) -> str:
    """What a page shows of a check; this and the files are JSON."""
    return json.dumps(
        check(stage, json.loads(files), Path("/course"))._asdict()
    )


def check(stage: str, files: Mapping[str, str], root: Path) -> Checked:
    """What the check of a stage says about a reader's files.

    Args:
        stage: its number, as `02`.
        files: their texts, by their paths below `exercises/fx`, which has its
            stubs again afterwards.
        root: the folder with stages/, fx/ and exercises/.
    """
    mine = root / "exercises" / "fx"
    stubs = {name: (mine / name).read_text("utf-8") for name in files}
    _put(mine, files)
    said = io.StringIO()
    told = (contextlib.redirect_stdout(said), contextlib.redirect_stderr(said))
    with _only(root), told[0], told[1]:
        course = importlib.import_module("stages.course")
        known = importlib.import_module("stages.manifest")
        subject = course.Subject(course.Tree(mine, under_test=[int(stage)]))
        importlib.import_module("pytest").main(
            [f"stages/{stage}", *OPTIONS, f"--deselect={LEFT_OUT}"], [subject]
        )
        asked = NEXT.search(said.getvalue())
        hints = known.find(asked[1]).hints if asked else ()
        signs = tuple(
            (one.qualname, subject.verdicts.of(one.name))
            for one in known.stages()[int(stage)].exercises
        )
    _put(mine, stubs)
    lines = said.getvalue().strip().splitlines()
    return Checked(
        "\n".join(o for o in lines if COMMAND not in o), hints, signs
    )


def _put(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


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
