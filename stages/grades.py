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
from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.table import Table

from stages.grade import Row

_NOT_IN_XML: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd]")


def show(rows: Sequence[Row], console: Console) -> None:
    """Print the rows as a table, and what a person should know."""
    numbers = [f"{number:02d}" for number in rows[0].marks]
    table = Table("student", *numbers, "right", "notes", box=None)
    for row in rows:
        marks = row.marks.values()
        counts = [f"{mark.right}/{len(mark.told)}" for mark in marks]
        total = f"{row.right}/{sum(len(mark.told) for mark in marks)}"
        table.add_row(row.student, *counts, total, "; ".join(row.notes)[:120])
    console.print(table)


def as_csv(rows: Sequence[Row]) -> str:
    """A line for each student, with a column for each exercise: 1 or 0."""
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    heads = [
        f"{number:02d} {name}"
        for number, mark in rows[0].marks.items()
        for name in mark.told
    ]
    lines.writerow(["student", *heads, "right", "of", "notes"])
    for row in rows:
        marks = row.marks.values()
        points = [int(not why) for mark in marks for why in mark.told.values()]
        ends = [row.right, len(points), "; ".join(row.notes)]
        lines.writerow([row.student, *points, *ends])
    return out.getvalue()


def as_json(rows: Sequence[Row]) -> str:
    """All that is known, as a list of students."""
    found = [
        {
            "student": row.student,
            "right": row.right,
            "problem": row.problem,
            "stages": {f"{n:02d}": m._asdict() for n, m in row.marks.items()},
        }
        for row in rows
    ]
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


def as_xml(rows: Sequence[Row]) -> str:
    """JUnit's XML, with a case for each exercise."""
    root = Xml.Element("testsuites", name="fx")
    for row in rows:
        for number, mark in row.marks.items():
            title = _legal(f"{row.student}, stage {number:02d}")
            of = str(len(mark.told))
            counts = {"tests": of, "failures": str(int(of) - mark.right)}
            suite = Xml.SubElement(root, "testsuite", counts, name=title)
            for name, why in mark.told.items():
                names = {"name": name, "classname": title}
                case = Xml.SubElement(suite, "testcase", names)
                if why:
                    Xml.SubElement(case, "failure", message=_legal(why))
            notes = "\n".join([row.problem, *mark.notes]).strip()
            Xml.SubElement(suite, "system-err").text = _legal(notes)
    Xml.indent(root)
    return Xml.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _legal(text: str) -> str:
    """A text without characters that XML cannot have."""
    return _NOT_IN_XML.sub("?", text)


WRITERS: Final = {".csv": as_csv, ".json": as_json, ".xml": as_xml}
"""The end of a file's name -> what writes it."""
