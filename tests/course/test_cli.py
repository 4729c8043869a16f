"""`python -m stages`: what each command says and does."""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from rich.console import Console

from stages import cli
from stages.blame import _failures, blame, told
from stages.functions import State
from stages.generate import generated, stale
from stages.manifest import ROOT, exercises, find, stages
from stages.running import Result
from stages.workspace import note_checked
from tests.course.learner import Learner
from tests.process import python

PREPEND = "linked_list.linked_list.Link.prepend"
RING = [one.name for one in stages()[1].pieces[0].functions]


@pytest.fixture
def said(learner: Learner, monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What the command line prints for a learner's own folder."""
    out = io.StringIO()
    monkeypatch.setattr(cli, "EXERCISES", learner.folder)
    monkeypatch.setattr(cli, "Workspace", lambda: learner.work)
    monkeypatch.setattr(cli, "lay_out", lambda: None)
    monkeypatch.setattr(cli, "CONSOLE", Console(file=out, width=100))
    return out


def test_progress_is_what_the_files_say(
    learner: Learner, said: io.StringIO
) -> None:
    learner.write(PREPEND)  # one function of several, so not the ring
    learner.write("_make_room")
    assert cli.main([]) == 0
    count = len(stages()[1].exercises)
    assert re.search(
        rf"01 +Linked-list graph +2 of {count} +·+w", said.getvalue()
    )
    assert (
        "next: write Link._unlink (ring: 1 of 5 written) in " in said.getvalue()
    )
    assert len(said.getvalue().splitlines()) <= 20
    assert all(
        len(one.rstrip()) <= 80 for one in said.getvalue().split("\n")[:9]
    )


def test_a_file_that_cannot_be_read_hides_no_other_stage(
    learner: Learner, said: io.StringIO
) -> None:
    learner.write_all(one.name for one in stages()[6].exercises)
    learner.body(PREPEND, "x._next = = self")
    assert cli.main([]) == 2
    lines = said.getvalue().splitlines()
    (first,) = (line for line in lines if line.startswith("01"))
    (sixth,) = (line for line in lines if line.startswith("06"))
    assert "!" in first
    count = len(stages()[6].exercises)
    assert f"{count} of {count}" in sixth
    assert any("linked_list.py:" in x and "syntax error" in x for x in lines)


def test_progress_says_which_stages_are_done(
    learner: Learner, said: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner.write_all()
    monkeypatch.setattr(
        cli,
        "is_noted",
        lambda tree, number, word: number == 4 or (number, word) == (2, "done"),
    )
    assert cli.main([]) == 0
    lines = said.getvalue().splitlines()
    assert [line[:2] for line in lines if ", done " in line] == ["02"]
    assert [line[:2] for line in lines if ", sealed " in line] == ["04"]


@pytest.mark.parametrize("one", exercises().values(), ids=lambda x: x.name)
def test_every_exercise_has_three_hints_that_grow(one: object) -> None:
    hints = find(str(one[0])).hints  # type: ignore[index]
    assert len({*hints}) == 3
    assert all(len(hint) > 20 for hint in hints)


def test_hints_come_one_by_one(said: io.StringIO) -> None:
    assert cli.main(["hint", "prepend"]) == 0
    assert "hint 1 of 3" in said.getvalue()
    assert "hint 2 of 3" not in said.getvalue()
    assert "more: python -m stages hint Link.prepend 2" in said.getvalue()
    assert cli.main(["hint", "prepend", "3"]) == 0
    assert "hint 3 of 3" in said.getvalue()


def test_the_next_hint_is_of_the_next_exercise(
    learner: Learner, said: io.StringIO
) -> None:
    first, second, *_ = stages()[1].pieces
    learner.write_all(one.name for one in first.functions)
    assert cli.main(["hint"]) == 0
    assert said.getvalue().startswith(f"{second.title} (stage 01)")


def test_there_is_no_fourth_hint(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["hint", "prepend", "4"])
    assert "there are three hints: 1, 2, 3" in capsys.readouterr().err


def test_a_name_may_leave_out_an_underscore(said: io.StringIO) -> None:
    assert cli.main(["hint", "make_room"]) == 0
    assert said.getvalue().startswith("_make_room (stage 01)")


def test_a_hint_goes_through_the_steps(
    learner: Learner, said: io.StringIO
) -> None:
    learner.write("Link._unlink")
    assert cli.main(["hint", "ring"]) == 0
    lines = [" ".join(line.split()) for line in said.getvalue().splitlines()]
    assert any(line.startswith("w Link._unlink Take") for line in lines)
    assert any(line.startswith("· Link.prepend Put") for line in lines)
    assert (
        "step: Link.prepend in exercises/fx/linked_list/linked_list.py" in lines
    )


def test_a_whole_is_reset_at_once(learner: Learner, said: io.StringIO) -> None:
    learner.write_all()
    assert cli.main(["reset", "ring"]) == 0
    states = learner.tree().states()
    for one in find("ring").functions:
        assert states[one.name] is not State.WRITTEN
    assert states["linked_list.linked_list._make_room"] is State.WRITTEN


def test_titles_are_names_of_one_thing() -> None:
    titles = [one.title for stage in stages().values() for one in stage.pieces]
    assert len({title.lower() for title in titles}) == len(titles)


def test_a_name_that_is_no_exercise(said: io.StringIO) -> None:
    assert cli.main(["hint", "nonsense"]) == 2
    assert "there is no exercise 'nonsense'" in said.getvalue()
    assert "did you mean" not in said.getvalue()


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("torch_function", "__torch_function__ (stage 03)"),
        ("Proxy.torch_function", "__torch_function__ (stage 03)"),
        ("prepnd", "did you mean prepend"),
        ("unlnk", "did you mean _unlink"),
    ],
)
def test_the_nearest_name_is_found(
    name: str, found: str, said: io.StringIO
) -> None:
    cli.main(["hint", name])
    assert found in " ".join(said.getvalue().split())


def test_the_solution_is_kept_until_it_is_earned(
    learner: Learner, said: io.StringIO
) -> None:
    assert cli.main(["solution", PREPEND]) == 1
    assert "does not pass yet" in said.getvalue()
    assert "before._next = x" not in said.getvalue()
    for one in stages()[1].exercises:
        learner.write(one.name)
    assert cli.main(["solution", PREPEND]) == 0
    assert "before._next = x" in said.getvalue()


def test_the_solution_for_who_gives_up(said: io.StringIO) -> None:
    assert cli.main(["solution", PREPEND, "--spoil"]) == 0
    assert "before._next = x" in said.getvalue()


def test_next_is_the_lowest_and_a_hint_is_of_the_stage_checked_last(
    learner: Learner, said: io.StringIO
) -> None:
    assert cli.main(["hint"]) == 0
    assert "(stage 01)" in said.getvalue()
    note_checked(learner.folder, 4)
    assert cli.main(["hint"]) == 0
    assert "(stage 04)" in said.getvalue()
    assert cli.main([]) == 0
    assert "write Link._unlink (ring: 0 of 5 written) in " in said.getvalue()


def test_reset_and_restore(learner: Learner, said: io.StringIO) -> None:
    fresh = learner.file("linked_list/linked_list.py").read_text()
    learner.write(PREPEND)
    mine = learner.file("linked_list/linked_list.py").read_text()
    for what in (
        PREPEND,
        "linked_list/linked_list.py",
        "fx/linked_list/linked_list.py",
        "01",
        "all",
    ):
        assert cli.main(["reset", what]) == 0
        assert learner.file("linked_list/linked_list.py").read_text() == fresh
        assert cli.main(["reset", "--restore"]) == 0
        assert learner.file("linked_list/linked_list.py").read_text() == mine
    assert cli.main(["reset"]) == 2
    assert cli.main(["reset", "nothing.py"]) == 2
    assert "fx has no file 'nothing.py'" in said.getvalue()


def test_reset_of_a_function_that_was_renamed(
    learner: Learner, said: io.StringIO
) -> None:
    learner.edit("linked_list/linked_list.py", "def prepend(", "def put(")
    assert cli.main(["reset", PREPEND]) == 2
    assert (
        "python -m stages reset linked_list/linked_list.py" in said.getvalue()
    )


def test_reset_of_what_cannot_be_found(
    learner: Learner, said: io.StringIO
) -> None:
    assert cli.main(["reset", "99"]) == 2
    assert "there is no stage '99'" in said.getvalue()
    learner.edit("linked_list/linked_list.py", "def prepend(", "def put(")
    assert cli.main(["reset", "01"]) == 2
    assert (
        "    python -m stages reset linked_list/linked_list.py\n"
        in said.getvalue()
    )


def test_reset_all_is_all(learner: Learner, said: io.StringIO) -> None:
    for name in generated():
        learner.file(name).unlink()
    assert cli.main(["reset", "all"]) == 0
    assert [*stale(learner.folder / "fx")] == []


def test_a_file_that_is_not_text(learner: Learner, said: io.StringIO) -> None:
    learner.file("linked_list/linked_list.py").write_bytes(b"# caf\xe9\n")
    for command in ([], ["reset", PREPEND]):
        said.truncate(0)
        assert cli.main(command) == 2
        words = "".join(said.getvalue().split())
        assert "linked_list.pyisnotUTF-8" in words


# --- blame -----------------------------------------------------------------


def test_blame_finds_the_wrong_one_of_an_earlier_stage(
    learner: Learner, executor: ProcessPoolExecutor
) -> None:
    learner.write_all(RING)
    learner.write("create_name")
    learner.write(PREPEND, "self._prev = x", "pass")
    found = blame(learner.tree(1), 1, executor)
    assert [*told(found)][1:] == [
        "All of them pass with the reference's Link.prepend.",
        "    look at exercises/fx/linked_list/linked_list.py, Link.prepend",
    ]


def test_blame_names_a_whole_exercise_of_which_two_are_wrong(
    learner: Learner, executor: ProcessPoolExecutor
) -> None:
    learner.write_all(RING)
    learner.write(PREPEND, "self._prev = x", "pass")
    learner.write("LinkedList.erase", "self._len -= 1", "self._len -= 2")
    found = blame(learner.tree(1), 1, executor)
    lines = [*told(found)]
    assert lines[1] == "All of them pass with the reference's ring."
    look = "    look at exercises/fx/linked_list/linked_list.py, "
    assert {f"{look}Link.prepend", f"{look}LinkedList.erase"} < {*lines}
    assert lines[-1] == "    No function of ring is enough alone."


def test_blame_finds_a_pair(
    learner: Learner, executor: ProcessPoolExecutor
) -> None:
    learner.write_all(RING)
    learner.write(PREPEND, "self._prev = x", "pass")
    other = "linked_list.linked_list._make_room"
    learner.write(other, "place * step", "step")
    found = blame(learner.tree(1), 1, executor)
    (pair,) = found.guilty
    assert [one.title for one in pair] == ["Link.prepend", "_make_room"]


def test_blame_of_what_is_no_exercise(
    learner: Learner, executor: ProcessPoolExecutor
) -> None:
    for one in stages()[1].exercises:
        learner.write(one.name)
    learner.edit(
        "linked_list/linked_list.py",
        "return self._sort_key < other._sort_key",
        "return self._sort_key > other._sort_key",
    )
    found = blame(learner.tree(1), 1, executor)
    assert found.elsewhere
    assert any("git diff --no-index" in line for line in told(found))


def test_a_test_that_now_waits_for_a_stub_has_lost_its_mistake() -> None:
    result = Result(1, {}, {}, {"b": "wrong"}, {}, [], ["a"], [], "")
    assert _failures(result, {"a": "wrong"}) == 0
    assert _failures(result, {"a": "wrong", "b": "wrong"}) == 1
    assert _failures(result._replace(status=4), {"a": "", "b": ""}) == 2


def test_nobody_is_blamed_for_nothing(
    learner: Learner, executor: ProcessPoolExecutor
) -> None:
    found = blame(learner.tree(1), 1, executor)
    (line,) = told(found)
    assert line.startswith("No test of this stage fails")


# --- run and watch ---------------------------------------------------------


def _stages(*arguments: str) -> subprocess.CompletedProcess[str]:
    """`python -m stages` as a person runs it."""
    return python("-m", "stages", *arguments)


def test_run_uses_the_learners_fx(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, torch, fx\n"
        "print(fx.__file__, sys.argv[1:])\n"
        "print(fx.symbolic_trace(lambda x: torch.relu(x) + 1).code)\n"
    )
    run = _stages("run", str(script), "a", "-b")
    assert run.returncode == 0, run.stderr
    assert os.path.join("exercises", "fx", "__init__.py") in run.stdout
    assert "['a', '-b']" in run.stdout
    assert "relu = torch.relu(x)" in run.stdout
    assert _stages("run", "nothing.py").returncode == 2


def test_run_shows_where_a_script_fails(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("print({}['nothing'])\n")
    run = _stages("run", str(script))
    assert run.returncode == 1
    assert "KeyError: 'nothing'" in run.stderr
    assert f'File "{script}", line 1' in run.stderr


def test_without_the_environment_one_line_says_what_to_do() -> None:
    run = python("-S", "-m", "stages")
    assert run.returncode == 1
    (line,) = run.stderr.splitlines()
    assert line.startswith("No module named '")
    assert "source .venv/bin/activate" in line


def test_nobody_is_asked_who_cannot_answer(
    learner: Learner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in `python -m stages predict 01 </dev/null` on a terminal."""
    guesses: list[object] = []
    monkeypatch.setattr(cli, "EXERCISES", learner.folder)
    monkeypatch.setattr(cli, "lay_out", lambda: None)
    monkeypatch.setattr(cli, "install", lambda tree: None)
    monkeypatch.setattr(cli, "ask", lambda *given: guesses.append(given[1]))
    monkeypatch.setattr(cli, "CONSOLE", Console(force_terminal=True))
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert cli.main(["predict", "01"]) == 0
    assert guesses == [""]


def test_a_command_that_does_not_exist() -> None:
    run = _stages("watch", "9")
    assert run.returncode == 2
    assert "there is no stage '9'" in run.stderr


def test_watch_answers_a_save(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "stages", "watch", "01"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        # What a shell starts in the background ignores Ctrl-C, and so do its
        # children, `make test &` among them.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    said = process.stdout.fileno()
    os.set_blocking(said, False)
    try:
        first = _read_until(said, "waiting for a save", 60)
        assert "stage 01, Linked-list graph" in first
        time.sleep(0.5)
        path = ROOT / "exercises" / "fx" / "linked_list" / "linked_list.py"
        os.utime(path)
        second = _read_until(said, "waiting for a save", 30)
        assert "stage 01, Linked-list graph" in second
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)
        process.stdout.close()
    assert process.returncode == 0


def _read_until(pipe: int, text: str, seconds: float) -> str:
    """What comes out of a pipe until `text` does."""
    end = time.monotonic() + seconds
    found = ""
    while text not in found:
        assert time.monotonic() < end, found
        with contextlib.suppress(BlockingIOError):
            found += os.read(pipe, 1 << 16).decode()
        time.sleep(0.05)
    return found
