"""The learner's files: laid out, reset, restored; nothing is ever lost."""

from __future__ import annotations

import ast
import shutil
import subprocess
from pathlib import Path

import pytest

from stages import functions, generate
from stages.functions import State
from stages.generate import generated, stale, written
from stages.manifest import (
    EXERCISES,
    REFERENCE,
    ROOT,
    exercises,
    exercises_by_file,
)
from stages.workspace import (
    Workspace,
    backups,
    lay_out,
    reset_files,
    reset_functions,
    restore,
)
from tests.course.learner import Learner

FIRST_LINK = "Make a link that is its own neighbour on both sides."

PREPEND = "linked_list.linked_list.Link.prepend"


# --- the stubs -------------------------------------------------------------


def test_exercises_are_the_stubs_and_signatures() -> None:
    """On a learner's machine bodies may be written; the rest must be there."""
    for one in exercises().values():
        mine = (EXERCISES / "fx" / one.file).read_text(encoding="utf-8")
        given = (REFERENCE / one.file).read_text(encoding="utf-8")
        yours = functions.function(ast.parse(mine), one.qualname)
        theirs = functions.function(ast.parse(given), one.qualname)
        assert functions.signature(yours) == functions.signature(theirs)
        if functions.state(yours) is State.UNWRITTEN:
            assert f'NotImplementedError("{one.stub}")' in ast.unparse(
                yours
            ).replace("'", '"')
    if not [*written(EXERCISES / "fx")]:
        assert [*stale(EXERCISES / "fx")] == []


def test_git_has_the_files_to_write_in_and_no_copies() -> None:
    """Git ignores the others, which are copies of files of fx/."""
    names = [f"exercises/fx/{name}" for name in generated()]
    run = subprocess.run(
        ["git", "check-ignore", "--no-index", *names],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    wanted = [f"exercises/fx/{name}" for name in exercises_by_file()]
    assert not run.stderr, run.stderr
    assert sorted({*names} - {*run.stdout.split()}) == sorted(wanted)


def test_the_first_check_lays_the_copies_out(learner: Learner) -> None:
    shown, written_in = learner.file("show/page.css"), learner.file("node.py")
    before, empty = shown.read_text(), learner.file("schemas")
    shown.unlink()
    written_in.unlink()
    shutil.rmtree(empty)
    assert [*stale(learner.folder / "fx")] == ["node.py"]
    lay_out(learner.work)
    assert shown.read_text() == before
    assert [*stale(learner.folder / "fx")] == ["node.py"]  # `reset` writes it


@pytest.fixture
def older(learner: Learner, tmp_path: Path) -> Learner:
    """A learner who began when the library was older, and wrote something.

    Since then: a docstring and a helper of linked_list.py have changed, a
    file has come, and a line right beside the learner's own.
    """
    library = tmp_path / "older"
    shutil.copytree(REFERENCE, library)
    _replace(
        library / "linked_list/linked_list.py",
        FIRST_LINK,
        "Make.",
    )
    _replace(
        library / "linked_list/linked_list.py",
        "GAP: Final = 1 << 16",
        "GAP: Final = 8",
    )
    (library / "extra/effects/effects.py").unlink()
    for name, text in generated(library).items():
        learner.file(name).write_text(text)
    learner.file("extra/effects/effects.py").unlink()
    lay_out(Workspace(learner.folder, library))
    return learner


def _replace(path: Path, was: str, becomes: str) -> None:
    """Replace a text that stands in a file."""
    text = path.read_text()
    assert was in text
    path.write_text(text.replace(was, becomes))


def test_copies_follow_the_library_unless_they_were_changed(
    older: Learner,
) -> None:
    dropped, mine = older.file("old.py"), older.file("_pytree.py")
    for path in (dropped, older.work.base / "old.py"):
        path.write_text("# in an older version\n")
    for path in (mine, older.work.base / "_pytree.py"):
        path.write_text("# as it was\n")
    mine.write_text("# mine\n")
    for path in (older.file("proxy.py"), older.work.base / "proxy.py"):
        path.write_text("# stubs of then\n")
    lay_out(older.work)
    assert not dropped.exists()
    assert not (older.work.base / "old.py").exists()
    assert mine.read_text() == "# mine\n"
    assert (older.work.base / "_pytree.py").read_text() == "# as it was\n"
    assert older.file("proxy.py").read_text() == "# stubs of then\n"
    assert (older.work.base / "proxy.py").read_text() == generated()["proxy.py"]
    effects = generated()["extra/effects/effects.py"]
    assert older.file("extra/effects/effects.py").read_text() == effects
    assert (older.work.base / "extra/effects/effects.py").read_text() == effects


def test_a_stale_stub_is_seen(learner: Learner) -> None:
    root = learner.folder / "fx"
    assert [*stale(root)] == []
    learner.edit("node.py", "Stage 02", "Stage  02")
    learner.file("mine.py").write_text("")
    assert [*stale(root)] == ["node.py", "mine.py (not of the library)"]
    assert [*written(root)] == []
    learner.write(PREPEND)
    assert [*written(root)] == [PREPEND]


def test_the_generator_puts_aside_what_it_changes(
    learner: Learner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(generate, "SUMS", tmp_path / "sums")
    path = learner.file("node.py")
    path.write_text(path.read_text() + "MINE = 1\n")
    learner.file("mine.py").write_text("mine = 1\n")
    generate.write(learner.folder / "fx")
    assert [*stale(learner.folder / "fx")] == []
    assert not learner.file("mine.py").exists()
    restore(learner.work)
    assert learner.file("mine.py").read_text() == "mine = 1\n"
    assert "MINE = 1" in learner.file("node.py").read_text()


def test_what_other_systems_do_to_files_is_no_change(tmp_path: Path) -> None:
    copy = tmp_path / "fx"
    shutil.copytree(REFERENCE, copy)
    (copy / ".DS_Store").write_bytes(b"\xff\xfe")
    for path in copy.rglob("*.py"):
        path.write_text(path.read_text("utf-8"), newline="\r\n")
    assert generate.sums(copy) == generate.sums()
    assert generated(copy) == generated()


def test_lines_are_counted_as_python_counts_them() -> None:
    text = 'a = "\u2028"  # \x0c\n\n\ndef f() -> int:\n    return 1\n'
    assert functions.source_of(text, "f").startswith("def f()")
    new = functions.with_source(text, "f", "def f() -> None: ...\n")
    assert new == text.partition("def")[0] + "def f() -> None: ...\n"


@pytest.mark.parametrize(
    "text",
    [
        "def f(): return 1",
        "def f():\n    return 1\n",
        'def f():\n    """Only this."""\n',
    ],
)
def test_what_cannot_be_a_stub_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="needs a docstring and a body"):
        functions.stubbed(text, {"f": "x"})


def test_a_name_must_be_of_one_function() -> None:
    text = "def f(): ...\ndef f(): ...\n"
    with pytest.raises(LookupError, match="2 functions are named f"):
        functions.stubbed(text, {"f": "x"})
    with pytest.raises(LookupError, match="0 functions are named g"):
        functions.stubbed(text, {"g": "x"})


# --- reset -----------------------------------------------------------------


def test_reset_puts_one_function_back_and_keeps_the_rest(
    learner: Learner,
) -> None:
    learner.write(PREPEND)
    learner.write("linked_list.linked_list.LinkedList.erase")
    learner.edit(
        "linked_list/linked_list.py", "class Link:", "MINE = 1\n\n\nclass Link:"
    )
    before = learner.file("linked_list/linked_list.py").read_text()
    reset_functions(learner.work, [exercises()[PREPEND]])
    states = learner.tree().states()
    assert states[PREPEND] is State.UNWRITTEN
    assert states["linked_list.linked_list.LinkedList.erase"] is State.WRITTEN
    assert "MINE = 1" in learner.file("linked_list/linked_list.py").read_text()
    assert restore(learner.work) == ["linked_list/linked_list.py"]
    assert learner.file("linked_list/linked_list.py").read_text() == before


def test_reset_of_a_file_that_is_broken_or_gone(learner: Learner) -> None:
    learner.body(PREPEND, "x = = 1")
    broken = learner.file("linked_list/linked_list.py").read_text()
    with pytest.raises(SyntaxError):
        reset_functions(learner.work, [exercises()[PREPEND]])
    assert learner.file("linked_list/linked_list.py").read_text() == broken
    kept = reset_files(learner.work, ["linked_list/linked_list.py"])
    backup = learner.folder / kept
    assert (backup / "linked_list/linked_list.py").read_text() == broken
    learner.file("node.py").unlink()
    reset_files(learner.work, ["node.py"])
    assert [*stale(learner.folder / "fx")] == []


def test_a_restore_can_itself_be_undone(learner: Learner) -> None:
    learner.write(PREPEND)
    reset_files(learner.work, ["linked_list/linked_list.py"])
    learner.write("linked_list.linked_list.LinkedList.erase")
    mine = learner.file("linked_list/linked_list.py").read_text()
    restore(learner.work)
    assert learner.file("linked_list/linked_list.py").read_text() != mine
    restore(learner.work)
    assert learner.file("linked_list/linked_list.py").read_text() == mine
    assert len(backups(learner.work)) == 3


def test_a_backup_that_is_not_there(learner: Learner) -> None:
    with pytest.raises(LookupError, match="there are: none"):
        restore(learner.work)
    reset_files(learner.work, ["node.py"])
    with pytest.raises(LookupError, match="no backup 1999; there are: 2"):
        restore(learner.work, "1999")
