"""A stage is done once the library's own tests pass on the learner's code."""

from __future__ import annotations

import io
import re
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Never

import pytest
from rich.console import Console

from stages import proof
from stages.manifest import ROOT, stages
from stages.questions import questions
from stages.report import Verdicts, summary
from stages.tree import Tree
from tests.course.learner import Learner
from tests.reliability import run
from tests.reliability.part import Outcome

ERASE = "linked_list.linked_list.LinkedList.erase"


def failures(learner: Learner, number: int, target: str) -> list[proof.Failure]:
    """What one entry of a stage's proof finds."""
    job = learner.executor.submit(
        proof.run_target, learner.tree(number), number, target
    )
    return job.result()[2]


@pytest.mark.parametrize("number", stages())
def test_each_prediction_of_a_page_is_proved(number: int) -> None:
    page = (ROOT / f"docs/stages/{number:02d}.md").read_text(encoding="utf-8")
    found = questions(number)
    assert len(found) == len(re.findall("^/// predict", page, re.M)) > 0
    assert all(one.answer.strip() for one in found)


@pytest.mark.parametrize("number", stages())
def test_what_proves_a_stage_is_there(number: int) -> None:
    tests = [one for one in stages()[number].proof if "/" in one]
    parts = [one for one in stages()[number].proof if "." in one.split("/")[0]]
    assert [one for one in tests if not (ROOT / one).is_file()] == []
    assert {*parts} <= {f"tests.reliability.{name}" for name in run.names()}
    assert {*stages()[number].proof} == {*tests, *parts, "page"}


def test_a_right_tree_is_proved(learner: Learner) -> None:
    learner.write_all()
    assert failures(learner, 6, "page") == []
    assert failures(learner, 1, "tests/library/test_linked_list.py") == []


def test_a_page_that_is_not_true_of_a_tree(learner: Learner) -> None:
    learner.write_all()
    learner.write("Interpreter._run_nodes", "if collect:", "if False:")
    found = {each.what: each.told for each in failures(learner, 6, "page")}
    says = found["docs.examples.predict_06.what_is_left"]
    assert "what_is_left, prints something else than the page says" in says


def test_a_test_of_the_library_tells_like_any_other(learner: Learner) -> None:
    learner.write_all()
    learner.write(ERASE, "self._len -= 1", "self._len -= 2")
    found = failures(learner, 1, "tests/library/test_linked_list.py")
    assert found[0].what.startswith("tests/library/test_linked_list.py::")
    assert "test: tests/library/test_linked_list.py:" in found[0].told


def test_an_error_leads_to_the_exercise(learner: Learner) -> None:
    learner.write_all()
    learner.write(ERASE, "self._len -= 1", "self._length -= 1")
    found = failures(learner, 1, "tests/library/test_linked_list.py")
    assert found[0].through[-1] == ERASE
    assert "exercises/fx/linked_list/linked_list.py" in found[0].told
    *_, look, empty, end = proof.told(1, found)
    assert (look, empty) == (f"look at: {ERASE}", "")
    assert "Stage 01 is not done yet" in end


def test_a_bare_assert_leads_to_what_the_test_calls(learner: Learner) -> None:
    learner.write_all()
    learner.write(
        "compile_forward",
        'lines = [f"{line}\\n" for line in code.src.split("\\n")]',
        "lines = code.src.splitlines(keepends=True)",
    )
    found = failures(learner, 5, "tests/library/test_source.py")
    assert found[0].through[-1] == "codegen.source.compile_forward"
    assert "is left of `==`" in found[0].told
    *_, look, _, _ = proof.told(5, found[:1])
    assert look.startswith("look at: ")


def test_a_part_of_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    outcomes = [Outcome("case 1"), Outcome("case 2", "a wrong answer")]

    def run(seed: int, cases: int) -> list[Outcome]:
        asked.append((seed, cases))
        return outcomes

    part = SimpleNamespace(run=run, share=20)
    monkeypatch.setitem(sys.modules, "a_part", SimpleNamespace(PART=part))
    assert next(proof._search("a_part")) == "a wrong answer\ncase 2"
    outcomes.pop()
    assert next(proof._search("a_part")) == ""
    assert {*asked} == {(proof.SEED, 20)}


def test_a_case_leads_to_what_it_calls(learner: Learner) -> None:
    learner.write_all()
    learner.write("node.Node._connect", "node.users.pop(self, None)", "pass")
    (found,) = failures(learner, 2, "tests.reliability.edits")
    assert "node.Node._connect" in found.through
    assert "graph.Graph.eliminate_dead_code" not in found.through


def test_a_proof_is_remembered_by_what_it_depends_on(
    learner: Learner, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner.write_all()
    tree = learner.tree(1)
    memory = learner.folder / ".proofs"
    memory.write_text(f"{proof._key(tree, 1)}\n", encoding="utf-8")

    def no_pool() -> Never:
        raise RuntimeError("the proof is run")

    monkeypatch.setattr(proof, "pool", no_pool)
    assert proof.prove_stage(tree, 1, print) == []
    with pytest.raises(RuntimeError, match="the proof is run"):
        proof.prove_stage(tree, 2, print)
    learner.write(ERASE, "self._len -= 1", "self._len -= 2")
    with pytest.raises(RuntimeError, match="the proof is run"):
        proof.prove_stage(tree, 1, print)


def test_a_stage_is_done_while_its_functions_are_what_was_proved(
    learner: Learner, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def right(tree: Tree, number: int, target: str) -> proof.Proved:
        return target, "1 test", [], 1.0

    monkeypatch.setattr(proof, "run_target", right)
    learner.write_all()
    assert not proof.is_done(learner.tree(1), 1)
    assert proof.prove_stage(learner.tree(1), 1, str) == []
    assert proof.is_done(learner.tree(1), 1)
    assert not proof.is_done(learner.tree(2), 2)
    learner.write("node.Node._connect", "node.users.pop(self, None)", "pass")
    assert proof.is_done(learner.tree(1), 1)
    learner.write(ERASE, "self._len -= 1", "self._len -= 2")
    assert not proof.is_done(learner.tree(1), 1)


class Now(Executor):
    """Runs each job when it is submitted."""

    def submit(
        self, run: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Future[Any]:
        """Run a job here."""
        job: Future[Any] = Future()
        job.set_result(run(*args, **kwargs))
        return job


@pytest.fixture
def ran(learner: Learner, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The parts that a proof runs, of which the reliability one is red."""
    parts: list[str] = []

    def run(tree: Tree, number: int, target: str) -> proof.Proved:
        parts.append(target)
        failures = [proof.Failure(target, "wrong")] * ("edits" in target)
        return target, "1 test", failures, 7.0

    @contextmanager
    def now() -> Iterator[Executor]:
        yield Now()

    monkeypatch.setattr(proof, "run_target", run)
    monkeypatch.setattr(proof, "_ending_at_once", now)
    monkeypatch.setattr(proof, "as_completed", list)
    return parts


def test_a_proof_says_how_long_and_stops_at_the_first_red(
    learner: Learner, ran: list[str]
) -> None:
    said: list[str] = []
    found = proof.prove_stage(learner.tree(1), 1, said.append)
    assert [one.what for one in found] == ["tests.reliability.edits"]
    assert re.fullmatch(r"  5 parts, about \d+ s", said[0])
    assert said[-1].endswith("tests.reliability.edits (1 test)")
    assert len(said) == 4  # the parts after the red one are not waited for
    assert not (learner.folder / ".proofs").exists()


def test_what_failed_last_time_is_run_first(
    learner: Learner, ran: list[str]
) -> None:
    proof.prove_stage(learner.tree(1), 1, str)
    assert ran[0] == "page"
    ran.clear()
    said: list[str] = []
    proof.prove_stage(learner.tree(1), 1, said.append)
    assert ran[0] == "tests.reliability.edits"
    assert len(said) == 2


def test_an_estimate_is_of_this_machine(tmp_path: Path) -> None:
    path = tmp_path / "times"
    times = proof.Times.read(path)
    assert times.expected(["page", "tests/parity/test_zoo.py"]) == (
        proof.USUAL["test_zoo"] + proof.START
    )
    times.note("page", 40.0, is_wrong=False)
    assert proof.Times.read(path).usual("page") == 40.0
    path.write_text("{")
    assert proof.Times.read(path).usual("page") == proof.USUAL["page"]


def test_a_bar_is_drawn_on_a_terminal(learner: Learner, ran: list[str]) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80)
    proof.prove_stage(learner.tree(1), 1, console.print, console)
    assert "proving" in out.getvalue()


def test_no_part_is_waited_for_after_the_end() -> None:
    began = time.monotonic()
    with proof._ending_at_once() as executor:
        executor.submit(time.sleep, 60)
        # One that ends at once may end before Python 3.11 knows its process.
        executor.submit(time.sleep, 0.3).result()
    assert time.monotonic() - began < 50


def test_only_a_proof_says_done(learner: Learner) -> None:
    learner.write_all()
    verdicts = Verdicts()
    verdicts.passed.append("a test")
    for one in stages()[1].pieces:
        verdicts._signs[one.title] = ["✓"]

    def said() -> str:
        return "\n".join(summary(verdicts, learner.tree(1), [1], whole=True))

    assert "These pass. Now types, and the library's tests" in said()
    verdicts.refuted.append(1)
    assert "is done" not in said()
    assert "next: fix what failed above" in said()
    verdicts.refuted.clear()
    verdicts.is_proved = True
    assert "Stage 01 is done." in said()
