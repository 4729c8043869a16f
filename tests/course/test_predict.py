"""`python -m stages predict`, and what one can run once a stage is done."""

from __future__ import annotations

import io
import textwrap
from pathlib import Path

import pytest
from rich.console import Console

from stages import predict
from stages.manifest import ROOT, stages
from stages.report import Verdicts, summary
from tests.course.learner import Learner
from tests.process import python


@pytest.mark.parametrize("number", stages())
def test_each_stage_begins_with_a_question_of_its_page(number: int) -> None:
    out = io.StringIO()
    console = Console(file=out, width=100)
    answer = predict.question(stages()[number]).answer
    assert predict.ask(stages()[number], answer, console)
    said = out.getvalue()
    assert "As you said." in said
    assert f"next: python -m stages read {number:02d}" in said
    name = stages()[number].first.rpartition(".")[2]
    assert f"def {name}() -> None:" in said


def test_a_wrong_guess_is_told_why() -> None:
    out = io.StringIO()
    console = Console(file=out, width=100)
    assert not predict.ask(stages()[1], "a behind b", console)
    said = " ".join(out.getvalue().split())
    assert "Not quite what you said." in said
    assert "between b and the next one" in said


@pytest.mark.parametrize(
    ("guess", "is_right"),
    [
        ("x add (10, add)", True),
        ("X, add, 10 add", True),
        ("x add (add, 10)", False),
        ("", False),
    ],
)
def test_brackets_and_commas_do_not_count(guess: str, is_right: bool) -> None:
    assert predict.same(guess, "x add (10, add)") is is_right


def test_the_program_runs_with_the_learners_fx() -> None:
    run = python("-m", "stages", "predict", "03", "x add 10 add")
    assert run.returncode == 0, run.stderr
    assert "As you said." in run.stdout


@pytest.mark.parametrize("number", stages())
def test_there_is_something_to_run_after_each_stage(
    number: int, learner: Learner
) -> None:
    stage = stages()[number]
    assert (ROOT / stage.after).is_file()
    learner.write_all()
    verdicts = Verdicts()
    verdicts.passed.append("a test")
    for one in stage.pieces:
        verdicts._signs[one.title] = ["✓"]
    said = [*summary(verdicts, learner.tree(number), [number], whole=True)]
    assert f"try: python -m stages run {stage.after}" in said
    assert f"     It {stage.shows}." in said
    assert any(
        "read gradient" in line and "open now" in line for line in said
    ) is (number == 6)


def test_proxies_draw_a_real_network(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    script = f"""
        import runpy
        from pathlib import Path
        from stages.manifest import EXERCISES
        from stages.tree import Tree, install
        install(Tree(EXERCISES / "fx"))
        runpy.run_path("stages/03/after.py")["main"](Path({str(page)!r}))
        """
    run = python("-c", textwrap.dedent(script))
    assert run.returncode == 0, run.stderr
    assert "ResNet-18 on one Proxy: 71 nodes." in run.stdout
    assert "layer1" in page.read_text(encoding="utf-8")
