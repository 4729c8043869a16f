"""Notices that a clone was copied or moved, and `.venv` belongs elsewhere.

`.venv` has absolute paths in it: of its own folder, and of the clone whose `fx`
and `stages` it imports.  After a copy, its `pytest` would check the work in the
folder that was copied, and say so in a riddle.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from stages.manifest import ROOT

CURE = (
    "Make .venv anew in this folder:\n"
    "    rm -rf .venv && python3 -m venv .venv\n"
    "    .venv/bin/pip install -e '.[course]'    (or `make tour`)\n"
    "    source .venv/bin/activate"
)
"""What to do about it."""


def moved(here: Path, root: Path = ROOT, prefix: str = sys.prefix) -> str:
    """A paragraph if the Python that runs is that of another clone.

    Args:
        here: the folder in which the command was given.
        root: the clone that is imported.
        prefix: the environment of the Python that runs.

    Returns:
        The paragraph, or "".
    """
    clone = _clone(here.resolve())
    if clone is not None and clone != root:
        return (
            f"You are in {clone}, but the Python that runs ({prefix}) has "
            f"fx and stages of {root}, and would check the work there. Was "
            f"this folder copied or moved? {CURE}"
        )
    if str(root) in os.environ.get("PYTHONPATH", "").split(os.pathsep):
        return ""  # somebody has said what to import
    for other in _imported(Path(prefix)):
        if other != root and _is_clone(other, anyway=not other.exists()):
            return (
                f"The Python that runs ({prefix}) was made for {other}, and "
                f"this clone is {root}. Was it copied or moved? {CURE}"
            )
    return ""


def _clone(folder: Path) -> Path | None:
    """The clone that a folder is in, if it is in one."""
    return next(
        (one for one in (folder, *folder.parents) if _is_clone(one)), None
    )


def _is_clone(folder: Path, *, anyway: bool = False) -> bool:
    """Whether a folder is a clone of this project."""
    return anyway or (folder / "stages" / "plugin.py").is_file()


def _imported(prefix: Path) -> list[Path]:
    """The clones that an environment imports, from its .pth files."""
    found = []
    for path in sorted(prefix.glob("[Ll]ib/**/site-packages/*fx*.pth")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if Path(line).is_absolute():
                found.append(Path(line).resolve())
    return found
