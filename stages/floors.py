"""Which file of fx/ is of which stage, read from the files' first lines.

The first words of a file's docstring say it, `Stage 02, use-def: …`, and
nothing else does: this module only reads.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import NamedTuple

LIBRARY = Path(__file__).parent.parent / "fx"

_first_line = re.compile(r"Stage (\d\d), ([^:]+): (.+)")


class SourceFile(NamedTuple):
    """A file of the library.

    Attributes:
        path: where it is, from fx/ on.
        stage: the number of its stage.
        title: the name of its stage.
        about: what lives in it, in one line.
    """

    path: str
    stage: int
    title: str
    about: str


def source_files(library: Path = LIBRARY) -> list[SourceFile]:
    """The files of the library that have a stage, in order of the stages."""
    found = []
    for path in library.rglob("*.py"):
        docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
        match = _first_line.match(docstring)
        if match:
            stage, title, about = match.groups()
            name = str(path.relative_to(library))
            found.append(SourceFile(name, int(stage), title, about))
    return sorted(found, key=lambda file: (file.stage, file.path))


def stage_titles(library: Path = LIBRARY) -> dict[int, str]:
    """The stages that there are: number -> name."""
    return {file.stage: file.title for file in source_files(library)}
