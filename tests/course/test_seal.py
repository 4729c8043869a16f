"""A seal: the library's own tests run on the learner's code."""

from __future__ import annotations

import io
import re
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from stages import cli, seal
from stages.manifest import EXERCISES, ROOT, stages
from stages.predict import questions
from stages.report import Verdicts, summary
from stages.tree import Tree
from stages.workspace import is_noted, note
from tests.course.learner import Learner
from tests.reliability import run
from tests.reliability.part import Outcome

ERASE = "linked_list.linked_list.LinkedList.erase"


def found(learner: Learner, number: int, part: str) -> seal.Failure | None:
    """What one part of a stage's seal finds."""
    tree = learner.tree(number)
    return learner.executor.submit(seal.run_part, tree, number, part).result()


@pytest.mark.parametrize("number", stages())
def test_each_prediction_of_a_page_is_run(number: int) -> None:
    page = (ROOT / f"docs/stages/{number:02d}.md").read_text(encoding="utf-8")
    asked = questions(number)
    assert len(asked) == len(re.findall("^/// predict", page, re.M)) > 0
    assert all(one.answer.strip() for one in asked)


@pytest.mark.parametrize("number", stages())
def test_what_seals_a_stage_is_there(number: int) -> None:
    tests = [one for one in stages()[number].seal if "/" in one]
    parts = [one for one in stages()[number].seal if "." in one.split("/")[0]]
    assert [one for one in tests if not (ROOT / one).is_file()] == []
    assert {*parts} <= {f"tests.reliability.{name}" for name in run.names()}
    assert {*stages()[number].seal} == {*tests, *parts, "page"}


def test_a_right_tree_is_sealed(learner: Learner) -> None:
    learner.write_all()
    assert found(learner, 6, "page") is None
    assert found(learner, 1, "tests/library/test_linked_list.py") is None


def test_a_page_that_is_not_true_of_a_tree(learner: Learner) -> None:
    learner.write_all()
    learner.write("Interpreter._run_nodes", "if collect:", "if False:")
    failure = found(learner, 6, "page")
    assert failure is not None
    assert failure.what == "stages.06.demo.main"
    says, yours, expected = failure.told
    assert "prints something else than the page says" in says
    assert yours.startswith("yours: ") and expected.startswith("expected: ")


def test_a_failure_is_five_lines_and_a_function(learner: Learner) -> None:
    learner.write_all()
    learner.write(ERASE, "self._len -= 1", "self._len -= 2")
    failure = found(learner, 1, "tests/library/test_linked_list.py")
    assert failure is not None
    assert failure.what.startswith("tests/library/test_linked_list.py::")
    assert len(failure.told) <= 5
    test = "test: tests/library/test_linked_list.py:"
    assert failure.told[-1].startswith(test)


def test_an_error_leads_to_the_exercise(learner: Learner) -> None:
    learner.write_all()
    learner.write(ERASE, "self._len -= 1", "self._length -= 1")
    failure = found(learner, 1, "tests/library/test_linked_list.py")
    assert failure is not None and failure.through[-1] == ERASE
    lines = [*seal.told(failure)]
    assert any("exercises/fx/linked_list/linked_list.py" in x for x in lines)
    assert lines[-1] == f"look at: {ERASE}"
    assert len(lines) <= 7


def test_a_bare_assert_leads_to_what_the_test_calls(learner: Learner) -> None:
    learner.write_all()
    learner.write(
        "compile_forward",
        'lines = [f"{line}\\n" for line in code.src.split("\\n")]',
        "lines = code.src.splitlines(keepends=True)",
    )
    failure = found(learner, 5, "tests/library/test_source.py")
    assert failure is not None
    assert failure.through[-1] == "codegen.source.compile_forward"


def test_types_lead_to_the_exercise(learner: Learner) -> None:
    learner.write_all()
    given = (EXERCISES / "pyproject.toml").read_text()
    (learner.folder / "pyproject.toml").write_text(given)
    learner.write(ERASE, "self._len -= 1", 'self._len = "1"')
    failure = found(learner, 1, "types")
    assert failure is not None
    assert failure.through == [ERASE]
    assert "fx/linked_list/linked_list.py:" in failure.told[0]


def test_a_part_of_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    outcomes = [Outcome("case 1"), Outcome("case 2", "a wrong answer")]

    def run(seed: int, cases: int) -> list[Outcome]:
        asked.append((seed, cases))
        return outcomes

    part = SimpleNamespace(run=run, share=20)
    monkeypatch.setitem(sys.modules, "a_part", SimpleNamespace(PART=part))
    assert next(seal._search("a_part")) == "a wrong answer\ncase 2"
    outcomes.pop()
    assert next(seal._search("a_part")) == ""
    assert {*asked} == {(seal.SEED, 20)}


def test_a_case_leads_to_what_it_calls(learner: Learner) -> None:
    learner.write_all()
    learner.write("node.Node._connect", "node.users.pop(self, None)", "pass")
    failure = found(learner, 2, "tests.reliability.edits")
    assert failure is not None
    assert "node.Node._connect" in failure.through
    assert "graph.Graph.eliminate_dead_code" not in failure.through


def test_what_is_noted_holds_while_the_functions_are_the_same(
    learner: Learner,
) -> None:
    learner.write_all()
    note(learner.tree(), 1, "done")
    assert is_noted(learner.tree(), 1, "done")
    assert not is_noted(learner.tree(), 1, "sealed")
    assert not is_noted(learner.tree(), 2, "done")
    learner.write("node.Node._connect", "node.users.pop(self, None)", "pass")
    assert is_noted(learner.tree(), 1, "done")
    learner.write(ERASE, "self._len -= 1", "self._len -= 2")
    assert not is_noted(learner.tree(), 1, "done")


class Now(Executor):
    """Runs each job when it is submitted."""

    def submit(
        self, run: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Future[Any]:
        """Run a job here."""
        job: Future[Any] = Future()
        try:
            job.set_result(run(*args, **kwargs))
        except KeyboardInterrupt as error:
            job.set_exception(error)
        return job


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The parts that a seal runs, of which the reliability one is red."""
    parts: list[str] = []

    def run(tree: Tree, number: int, part: str) -> seal.Failure | None:
        parts.append(part)
        return seal.Failure(part, ["wrong"]) if "edits" in part else None

    @contextmanager
    def now() -> Iterator[Executor]:
        yield Now()

    monkeypatch.setattr(seal, "run_part", run)
    monkeypatch.setattr(seal, "_ending_at_once", now)
    return parts


def test_a_guess_is_of_this_machine_and_what_failed_is_run_first(
    learner: Learner, ran: list[str]
) -> None:
    guesses: list[int] = []
    for tests in (seal.TESTS / 9, seal.TESTS, 3 * seal.TESTS):
        out = io.StringIO()
        ran.clear()
        failure = seal.seal(learner.tree(1), 1, tests, Console(file=out))
        assert failure is not None
        assert failure.what == "tests.reliability.edits"
        line = re.search(r"(\d+) parts, about (\d+) s", out.getvalue())
        assert line is not None
        assert int(line[1]) == len(stages()[1].seal) + 1
        guesses.append(int(line[2]))
        assert "types" in ran
    assert guesses[0] == guesses[1]
    assert guesses[2] == pytest.approx(3 * guesses[1], abs=2)
    assert ran[0] == "tests.reliability.edits"


def test_ctrl_c_leaves_a_stage_done_and_not_sealed(
    learner: Learner, monkeypatch: pytest.MonkeyPatch, ran: list[str]
) -> None:
    def interrupted(tree: Tree, number: int, part: str) -> None:
        raise KeyboardInterrupt

    out = io.StringIO()
    monkeypatch.setattr(cli, "EXERCISES", learner.folder)
    monkeypatch.setattr(cli, "lay_out", lambda: None)
    monkeypatch.setattr(cli, "CONSOLE", Console(file=out, width=100))
    monkeypatch.setattr(seal, "run_part", interrupted)
    learner.write_all(one.name for one in stages()[1].exercises)
    assert cli.main(["seal", "01"]) == 130
    assert "Stage 01: exercises done ✓" in out.getvalue()
    assert out.getvalue().endswith("Stage 01 is done, and not sealed.\n")
    assert not (learner.folder / ".seal-failed").exists()


def test_no_part_is_waited_for_after_the_end() -> None:
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), seal._ending_at_once() as executor:
        executor.submit(time.sleep, 60)
        # One that ends at once may end before Python 3.11 knows its process.
        executor.submit(time.sleep, 0.3).result()
        raise KeyboardInterrupt
    assert time.monotonic() - began < 50


def test_done_is_said_of_whole_stages(learner: Learner) -> None:
    learner.write_all()
    verdicts = Verdicts()
    verdicts.passed.append("a test")
    for one in stages()[1].pieces:
        verdicts._signs[one.title] = ["✓"]

    def said(*, whole: bool) -> str:
        return "\n".join(summary(verdicts, learner.tree(1), [1], whole))

    assert "These pass. Now: pytest stages/01" in said(whole=False)
    assert "done ✓" not in said(whole=False)
    assert "Stage 01: exercises done ✓" in said(whole=True)
