"""`python -m stages grade`: right rows, and nobody harms anybody else."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as Xml
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from rich.console import Console

from stages import cli, functions, grade
from stages.generate import generated
from stages.grade import Mark, Row
from stages.manifest import REFERENCE, ROOT, exercises_by_file, stages
from stages.tree import Tree, reference_source

FILES = exercises_by_file()
STUBS = {name: text for name, text in generated().items() if name in FILES}
FIRST = [one.name for one in stages()[1].exercises]
NAME = "linked_list.namespace.Namespace.create_name"
NAME_FILE = "linked_list/namespace.py"
SIGNATURE = (
    "    def create_name(self, candidate: str, obj: object | None = None) "
    '-> str:\n        """A name."""\n'
)

FAST = 5
"""Seconds of processor time in which each program here has to end."""


def student(
    folder: Path,
    written: Iterable[str] = FIRST,
    *,
    where: str = "exercises/fx",
    name: str = "",
    head: str = "",
) -> Path:
    """A folder that somebody hands in.

    Args:
        folder: is made.
        written: the exercises that are as the reference has them.
        where: the folder of fx in it.
        name: the body of `create_name`, if it is another one.
        head: lines at the top of its file.
    """
    wanted = {*written}
    for file, text in STUBS.items():
        for one in FILES[file]:
            version = reference_source(one) if one.name in wanted else ""
            if one.name == NAME and name:
                body = textwrap.indent(textwrap.dedent(name), " " * 8)
                version = f"{SIGNATURE}{body.strip(chr(10))}\n"
            if version:
                text = functions.with_source(text, one.qualname, version)
        if file == NAME_FILE and head:
            first = "from __future__ import annotations\n"
            text = text.replace(first, first + head, 1)
        path = folder / where / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def graded(*folders: Path, numbers: Sequence[int] = (1,)) -> dict[str, Row]:
    """The rows of some stages, by student."""
    console = Console(file=io.StringIO())
    rows = grade.grade(folders, numbers, console, seconds=FAST, jobs=2)
    return {row.student: row for row in rows}


def victim(tmp_path: Path) -> Path:
    """A folder that must survive."""
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "kept.txt").write_text("kept")
    return folder


def survives(folder: Path) -> bool:
    """Whether nothing in it was changed."""
    found = {path.name: path.read_text() for path in folder.iterdir()}
    return found == {"kept.txt": "kept"}


def rmtree(folder: Path) -> str:
    """A body that removes a folder, and does not care whether it could."""
    return f"""
        import os, shutil
        shutil.rmtree({str(folder)!r}, ignore_errors=True)
        try:
            os.remove({str(folder / "kept.txt")!r})
        except OSError:
            pass
        open({str(folder / "new.txt")!r}, "w").close()
        return candidate
        """


STUBBORN = """
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
    """
COPIES = """
    import importlib.util
    from stages.manifest import REFERENCE
    spec = importlib.util.spec_from_file_location(
        "fx.linked_list.real", REFERENCE / "linked_list" / "namespace.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Namespace.create_name(self, candidate, obj)
    """


def test_each_loses_only_what_is_wrong(tmp_path: Path) -> None:
    kept = victim(tmp_path)
    desk = tmp_path / "class"
    broken = student(desk / "broken") / "exercises" / "fx" / NAME_FILE
    broken.write_text("def (:\n", encoding="utf-8")
    link = student(desk / "links") / "exercises" / "fx" / NAME_FILE
    link.unlink()
    link.symlink_to(REFERENCE / NAME_FILE)
    (desk / "stripped" / "stages").mkdir(parents=True)
    (desk / "stripped" / "fx").symlink_to(REFERENCE)
    rows = graded(
        student(desk / "right"),
        student(desk / "half", FIRST[:5]),
        student(desk / "ring", FIRST[:1]),
        student(desk / "deletes", name=rmtree(kept)),
        student(desk / "copies", name=COPIES),
        student(desk / "ends", name="import os\nos._exit(0)"),
        student(desk / "forks", name="import os\nwhile True:\n    os.fork()"),
        student(desk / "hangs", name=STUBBORN),
        student(desk / "imports", head=f"open({str(kept / 'x')!r}, 'w')\n"),
        student(desk / "alone" / "exercises", where="fx"),
        *(desk / name for name in ("broken", "links", "stripped")),
    )
    assert survives(kept)
    assert rows["right"].right == rows["alone"].right == 3
    assert rows["half"].right == 1
    assert rows["half"].marks[1].told["_make_room"] == "to write"
    assert rows["ring"].marks[1].told["ring"] == (
        "1 of 5 functions right: to write"
    )
    assert rows["right"].notes == []
    assert rows["stripped"].notes == ["there are no exercises in it"]
    told = rows["links"].marks[1].told
    assert told["Namespace.create_name"] == "to write"
    for name, said in (
        ("deletes", f"it wanted to rmtree {kept}"),
        ("copies", "it wanted to read the solutions"),
        ("ends", "it ended its own process"),
        ("forks", "it wanted to start a process"),
        ("hangs", "01: it "),  # was killed, or stopped on a busy machine
        ("imports", f"it wanted to write {kept / 'x'}"),
        ("broken", "namespace.py:1: syntax error"),
    ):
        assert rows[name].marks[1].told["Namespace.create_name"], name
        assert any(said in note for note in rows[name].notes), rows[name]
    assert rows["deletes"].marks[1].told["ring"] == ""


def test_what_cannot_be_parsed_costs_its_own_stage(tmp_path: Path) -> None:
    third = [one.name for one in stages()[3].exercises]
    folder = student(tmp_path / "class" / "one", third)
    for file in ("linked_list/namespace.py", "interpreter.py"):
        path = folder / "exercises" / "fx" / file
        path.write_text("def (:\n", encoding="utf-8")
    row = graded(folder, numbers=[1, 3, 6])["one"]
    assert [mark.right for mark in row.marks.values()] == [0, 5, 0]


GUARDED = """
import os, shutil, subprocess, sys, threading
from pathlib import Path
from stages.grade import Guard
mine, theirs = Path(sys.argv[1]), Path(sys.argv[2])
said = []
os.symlink(theirs, mine / "way")
def nothing(): pass
sys.addaudithook(
    Guard(mine, Path("/nowhere"), [], nothing.__code__, said.append)
)
folder = os.open(theirs, os.O_RDONLY)
(mine / "own.txt").write_text("own")
(mine / "folder").mkdir()
shutil.rmtree(mine / "folder")
kept = str(theirs / "kept.txt")
tries = {
    "write": lambda: open(kept, "w"),
    "append": lambda: open(kept, "a"),
    "remove": lambda: os.remove(kept),
    "remove in": lambda: os.remove("kept.txt", dir_fd=folder),
    "rename": lambda: os.rename(kept, mine / "stolen.txt"),
    "move": lambda: shutil.move(kept, mine),
    "over": lambda: os.replace(mine / "own.txt", kept),
    "rmtree": lambda: shutil.rmtree(theirs),
    "mkdir": lambda: os.mkdir(theirs / "new"),
    "link": lambda: os.symlink(kept, theirs / "link"),
    "truncate": lambda: os.truncate(kept, 0),
    "chmod": lambda: os.chmod(kept, 0),
    "start": lambda: subprocess.run(["true"]),
    "system": lambda: os.system("true"),
    "kill": lambda: os.kill(os.getppid(), 0),
}
for name, attempt in tries.items():
    try:
        attempt()
    except PermissionError as error:
        if "not while it is graded" in str(error):
            print(name)
try:
    (mine / "way" / "kept.txt").write_text("by a link")
except PermissionError:
    print("by a link")
thread = threading.Thread(target=os.remove, args=(kept,))
threading.excepthook = lambda error: print(error.exc_type.__name__)
thread.start()
thread.join()
print(len(said) > 10, (mine / "own.txt").read_text())
"""


def test_the_guard_refuses(tmp_path: Path) -> None:
    kept, mine = victim(tmp_path), tmp_path / "mine"
    mine.mkdir()
    run = subprocess.run(
        [sys.executable, "-c", GUARDED, mine, kept],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    expected = GUARDED.count("lambda: ")
    assert run.stdout.splitlines()[-3:] == [
        "by a link",
        "PermissionError",
        "True own",
    ], run.stdout
    assert len(run.stdout.splitlines()) == expected + 3, run.stdout
    assert survives(kept)


def test_what_is_all_right_is_sealed_if_one_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def seal(tree: Tree, number: int, *arguments: object) -> None:
        assert (tree.root / NAME_FILE).is_file()
        asked.append(number)

    monkeypatch.setattr(grade, "seal", seal)
    console = Console(file=io.StringIO())
    right, half = student(tmp_path / "right"), student(tmp_path / "half", [])
    rows = grade.grade([right, half], [1], console, seconds=FAST, seals=True)
    assert [row.notes for row in rows] == [["01: sealed"], []]
    assert asked == [1]


# --- what is written -------------------------------------------------------


def rows_made_up() -> list[Row]:
    """A student who has one exercise of two, and one without files."""
    half = Mark(
        {"ring": "", "loop": "It is \x00 <wrong>."},
        ["it wanted to start a process"],
    )
    none = Mark({"ring": "to write", "loop": "to write"})
    return [
        Row("ann", {1: half}),
        Row("bob", {1: none}, "there are no exercises in it"),
    ]


def test_a_row_of_csv_for_each_student() -> None:
    ann, bob = csv.DictReader(io.StringIO(grade.as_csv(rows_made_up())))
    assert (ann["01 ring"], ann["01 loop"], ann["of"]) == ("1", "0", "2")
    assert ann["notes"] == "01: it wanted to start a process"
    assert bob["right"] == "0"
    assert bob["notes"] == "there are no exercises in it"


def test_json_has_all_that_is_known() -> None:
    ann, _ = json.loads(grade.as_json(rows_made_up()))
    assert ann["stages"]["01"]["told"]["loop"].endswith("<wrong>.")


def test_xml_is_what_runners_read() -> None:
    root = Xml.fromstring(grade.as_xml(rows_made_up()))
    suite, other = root
    assert suite.attrib["tests"] == "2" and suite.attrib["failures"] == "1"
    ring, loop, notes = suite
    assert not [*ring]
    (failure,) = loop
    assert failure.attrib == {"message": "It is ? <wrong>."}
    assert notes.text == "it wanted to start a process"
    assert other.attrib["name"] == "bob, stage 01"


def test_the_table_has_a_row_for_each_student() -> None:
    out = io.StringIO()
    grade.show(rows_made_up(), Console(file=out, width=100))
    said = " ".join(out.getvalue().split())
    assert "ann 1/2 1/2 01: it wanted to start a process" in said


@pytest.mark.parametrize(
    ("text", "numbers"), [("3", [3]), ("01-03", [1, 2, 3]), ("01,04", [1, 4])]
)
def test_stages_are_numbers_and_ranges(text: str, numbers: list[int]) -> None:
    assert cli._stages(text) == numbers


def test_a_name_that_nothing_writes_is_refused_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    called: list[object] = []
    monkeypatch.setattr(cli, "grade", lambda *args: called.append(args))
    out = io.StringIO()
    monkeypatch.setattr(cli, "CONSOLE", Console(file=out, width=100))
    monkeypatch.setattr(cli, "lay_out", lambda: None)
    assert cli.main(["grade", str(tmp_path), "--out", "grades.txt"]) == 2
    assert ".csv, .json, .xml" in out.getvalue()
    assert not called
