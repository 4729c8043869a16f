"""The stage of each file of fx/, read from the first line of its docstring.

That line has the form `Stage 02, use-def: what lives here`, and no other
place says which stage a file belongs to.
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
        path: its path below fx/.
        stage: the number of its stage.
        title: the name of its stage.
        about: what lives in it, in one line.
    """

    path: str
    stage: int
    title: str
    about: str


def source_file(path: Path, library: Path = LIBRARY) -> SourceFile | None:
    """What a file of the library says of its stage; None if it has none."""
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
    match = _first_line.match(docstring)
    if match is None:
        return None
    stage, title, about = match.groups()
    name = str(path.relative_to(library))
    return SourceFile(name, int(stage), title, about)


def source_files(library: Path = LIBRARY) -> list[SourceFile]:
    """The files of the library that have a stage, in order of the stages."""
    read = (source_file(path, library) for path in library.rglob("*.py"))
    found = [file for file in read if file is not None]
    return sorted(found, key=lambda file: (file.stage, file.path))
