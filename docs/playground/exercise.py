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
from typing import Final

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

HIDDEN: Final = re.compile(r" python -m stages |^fx under |^[✓✗~·]|^ +It ")
"""A line that a terminal needs, and a page does not."""

NEXT: Final = re.compile(r"^next: (?:write|fix) ([\w.]+) (?:\(|of|in)", re.M)
"""The line that names the function to go on with."""

HOME: Final = str(Path(__file__).resolve().parents[1])
"""Where torch is in a page, which finds it from the working folder alone."""


def check_page(stage: str, files: str, root: Path = Path("/course")) -> str:
    """What the check of a stage says about a reader's files, as JSON.

    It has what is printed; each function, its sign and the stub it waits for;
    and of the function to go on with the name, the fault and the hints.

    Args:
        stage: its number, as `02`.
        files: JSON, their texts by their paths below `exercises/fx`, which
            has its stubs again afterwards.
        root: the folder with stages/, fx/ and exercises/.
    """
    mine = root / "exercises" / "fx"
    texts = json.loads(files)
    stubs = {name: (mine / name).read_text("utf-8") for name in texts}
    _put(mine, texts)
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
        one = known.find_function(asked[1]) if asked else None
        verdicts, states = subject.verdicts, subject.tree.states()
        signs = [
            (
                o.qualname,
                # What is not written is not wrong.
                "·"
                if states[o.name].value == "to write"
                else verdicts.of(o.name),
                verdicts.waits.get(o.name, ""),
            )
            for piece in known.stages()[int(stage)].pieces
            for o in piece.functions
        ]
    _put(mine, stubs)
    lines = said.getvalue().splitlines()
    found = {
        "printed": "\n".join(o for o in lines if not HIDDEN.search(o)).strip(),
        "signs": signs,
        "next": one and one.qualname,
        "why": one and verdicts.told.get(one.name),
        "hints": one.hints if one else (),
    }
    return json.dumps(found)


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
