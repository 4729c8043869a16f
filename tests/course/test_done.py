"""A stage is done once the library's own tests pass on the learner's code."""

from __future__ import annotations

import re
import sys
from types import SimpleNamespace
from typing import Never

import pytest

from stages import proof
from stages.manifest import ROOT, stages
from stages.report import Verdicts, summary
from tests.course.learner import Learner
from tests.reliability import run
from tests.reliability.part import Outcome

ERASE = "linked_list.linked_list.LinkedList.erase"


def failures(learner: Learner, number: int, target: str) -> list[proof.Failure]:
    """What one entry of a stage's proof finds."""
    job = learner.executor.submit(
        proof._run, learner.tree(number), number, target
    )
    return job.result()[2]


@pytest.mark.parametrize("number", stages())
def test_each_prediction_of_a_page_is_proved(number: int) -> None:
    page = (ROOT / f"docs/stages/{number:02d}.md").read_text(encoding="utf-8")
    found = [*proof.predictions(page)]
    assert len(found) == len(re.findall("^/// predict", page, re.M)) > 0
    assert all(answer.strip() for _, answer in found)


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
