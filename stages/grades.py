"""Writes grades: a table, CSV and JSON for people, JUnit's XML for runners.

The runners of GitHub Classroom, GitLab and Jenkins read JUnit's XML: a suite is
a student's stage, a case is an exercise.
"""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as Xml
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from stages.grade import Mark, Row
from stages.report import DONE, TO_WRITE

_NOT_IN_XML: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd]")


def show(rows: Sequence[Row], console: Console) -> None:
    """Print the rows as a table, and what a person should know."""
    numbers = [*rows[0].marks] if rows else []
    proving = any(row.proof for row in rows)
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("student")
    for number in numbers:
        table.add_column(f"{number:02d}", justify="right")
    table.add_column("right", justify="right")
    if proving:
        table.add_column("proof")
    table.add_column("s", justify="right")
    table.add_column("notes")
    for row in rows:
        cells = [_count(mark) for mark in row.marks.values()]
        notes = "; ".join(row.notes)
        total = sum(len(mark.signs) for mark in row.marks.values())
        proof = [row.proof[:40]] * proving
        table.add_row(
            row.student,
            *cells,
            f"{row.right}/{total}",
            *proof,
            f"{row.seconds:.1f}",
            notes[:120],
        )
    console.print(table)
    if why := _shared(rows):
        console.print(
            f"Not isolated ({why}): the programs could reach the network, and "
            f"only Python's own events kept them from writing files. Use a "
            f"container for programs that you do not trust."
        )


def _count(mark: Mark) -> str:
    """How many exercises of a stage are right: 3/4."""
    return f"{mark.right}/{len(mark.signs)}"


def _shared(rows: Sequence[Row]) -> str:
    """Why a process was not isolated; "" if all were."""
    found = [mark.shared for row in rows for mark in row.marks.values()]
    return next((why for why in found if why), "")


def as_csv(rows: Sequence[Row]) -> str:
    """A line for each student."""
    numbers = [*rows[0].marks] if rows else []
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    stages = [f"stage {number:02d}" for number in numbers]
    heads = ["right", "of", "proof", "seconds", "isolated", "notes"]
    lines.writerow(["student", *stages, *heads])
    for row in rows:
        marks = row.marks.values()
        lines.writerow(
            [
                row.student,
                *(mark.right for mark in marks),
                row.right,
                sum(len(mark.signs) for mark in marks),
                row.proof,
                f"{row.seconds:.1f}",
                "no" if _shared([row]) else "yes",
                "; ".join(row.notes),
            ]
        )
    return out.getvalue()


def as_json(rows: Sequence[Row]) -> str:
    """All that is known, as a list of students."""
    found = [
        {
            "student": row.student,
            "right": row.right,
            "of": sum(len(mark.signs) for mark in row.marks.values()),
            "proof": row.proof,
            "seconds": round(row.seconds, 1),
            "notes": row.notes,
            "stages": {
                f"{number:02d}": mark._asdict()
                for number, mark in row.marks.items()
            },
        }
        for row in rows
    ]
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


def as_xml(rows: Sequence[Row]) -> str:
    """JUnit's XML."""
    root = Xml.Element("testsuites", name="fx")
    for row in rows:
        for number, mark in row.marks.items():
            _suite(root, row, number, mark)
    Xml.indent(root)
    return Xml.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(root: Xml.Element, row: Row, number: int, mark: Mark) -> None:
    """A suite with a case for each exercise, and one for the proof."""
    title = _legal(f"{row.student}, stage {number:02d}")
    suite = Xml.SubElement(root, "testsuite", name=title)
    suite.set("time", f"{mark.seconds:.1f}")
    cases = {
        name: "" if sign == DONE else mark.told.get(name, "not judged")
        for name, sign in mark.signs.items()
    }
    if mark.proof:
        cases["proof"] = "" if mark.proof == "proved" else mark.proof
    suite.set("tests", str(len(cases)))
    suite.set("failures", str(sum(1 for why in cases.values() if why)))
    for name, why in cases.items():
        case = Xml.SubElement(suite, "testcase", classname=title, name=name)
        if why:
            kind = "to write" if mark.signs.get(name) == TO_WRITE else "wrong"
            Xml.SubElement(case, "failure", type=kind, message=_legal(why))
    notes = [row.problem, *mark.notes, mark.shared]
    if said := "\n".join(note for note in notes if note):
        Xml.SubElement(suite, "system-err").text = _legal(said)


def _legal(text: str) -> str:
    """A text without characters that XML cannot have."""
    return _NOT_IN_XML.sub("?", text)


WRITERS: Final[dict[str, Callable[[Sequence[Row]], str]]] = {
    ".csv": as_csv,
    ".json": as_json,
    ".xml": as_xml,
}
"""The end of a file's name -> what writes it."""


def write(rows: Sequence[Row], path: Path) -> None:
    """Write the rows into a file; the end of its name says how.

    Raises:
        LookupError: a name with another end.
    """
    path.write_text(writer(path)(rows), encoding="utf-8")


def writer(path: Path) -> Callable[[Sequence[Row]], str]:
    """What writes a file of this name.

    Raises:
        LookupError: nothing does.
    """
    if path.suffix not in WRITERS:
        known = ", ".join(WRITERS)
        raise LookupError(f"{path}: the name must end in one of {known}")
    return WRITERS[path.suffix]
