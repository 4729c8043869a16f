"""Writes a learner's half-written exercises: for tests of later versions.

    python -m tests.course.kept.write tests/course/kept/0.2.zip

In four stages every second exercise is written, and a file has a function of
the learner's own.  What a version has written is not written again: it shows
that a later version still carries it over.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from stages import functions
from stages.generate import generated
from stages.manifest import REFERENCE, exercises_by_file, stages

STAGES = (1, 6, 7, 8)

OWN = '''

def my_own(count: int) -> int:
    """Count once more."""
    return count + 1
'''

WRITTEN = "written.txt"
"""The names of the functions that are written, a line each."""


def write(folder: Path) -> list[str]:
    """Write the learner's fx, and the stubs that it began with.

    Returns:
        The names of the functions that are written in it.
    """
    fresh = generated()
    names = [*_chosen()]
    for file, ones in exercises_by_file().items():
        text, given = fresh[file], (REFERENCE / file).read_text("utf-8")
        for one in ones:
            if one.name in names:
                mine = functions.source_of(given, one.qualname)
                text = functions.with_source(text, one.qualname, mine)
        is_begun = text != fresh[file]
        for root, words in (("fx", text + OWN * is_begun), (".base", None)):
            path = folder / root / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(words or fresh[file], encoding="utf-8")
    (folder / WRITTEN).write_text("\n".join(names))
    return names


def _chosen() -> Iterator[str]:
    for number in STAGES:
        for one in stages()[number].exercises[::2]:
            yield one.name


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        print(*write(Path(made)), sep="\n")
        shutil.make_archive(sys.argv[1].removesuffix(".zip"), "zip", made)
