"""The capstones: our solutions pass, and wrong programs are told why."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any, TypeAlias

import pytest
import torch

from fx.experimental.proxy_tensor import make_fx
from fx.node import Node
from stages.capstones.board import FOLDER, Row, _loaded, _ours
from stages.capstones.gradient import test_gradient as gradient
from stages.capstones.memory import test_memory as memory
from stages.checking import Mistake
from stages.manifest import ROOT

Anything: TypeAlias = Any

CAPSTONES = ("gradient", "memory")


def _check(*arguments: str) -> str:
    """What a check of the capstones prints."""
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return run.stdout + run.stderr


def test_our_solutions_pass_and_are_measured() -> None:
    said = _check(
        "stages/capstones",
        "--reference",
        "-k",
        "gradient or fpn or views or returned or several",
    )
    assert " passed" in said and "failed" not in said, said
    assert "deep, calls" in said and "the same" in said
    assert "fpn, peak / bound" in said


def test_a_capstone_that_is_not_written_is_to_write() -> None:
    with pytest.raises(AssertionError, match=r"docs/capstones/memory\.md"):
        _loaded("memory", FOLDER / "nothing.py")


def test_a_stage_beside_a_capstone_is_refused() -> None:
    said = _check("stages/capstones/memory", "stages/01")
    assert "check the capstones alone" in said


def test_a_row_says_whose_is_better() -> None:
    assert Row("size", 8, 10, "").said.endswith("20.0% better")
    assert Row("size", 11, 10, "").said.endswith("10.0% worse")
    assert Row("time", 11, 10, "ms").said.endswith("the same")


@pytest.mark.parametrize("name", CAPSTONES)
def test_each_capstone_has_a_page_a_check_and_a_solution(name: str) -> None:
    assert (ROOT / "docs" / "capstones" / f"{name}.md").is_file()
    assert (FOLDER / name / f"test_{name}.py").is_file()
    assert _ours(name)


# --- wrong planners ---------------------------------------------------------


def _planned(change: Anything) -> None:
    """Check a planner that changes our plan."""

    def plan(gm: Anything, *inputs: torch.Tensor) -> dict[Node, Anything]:
        found: dict[Node, Anything] = change(_ours("memory").plan(gm, *inputs))
        return found

    def program(x: torch.Tensor) -> object:
        one = torch.add(x, 1)
        view = one.view(-1)
        two = torch.mul(x, 2)
        return view.view(4, 4) + two.t()

    inputs = (torch.arange(16.0).view(4, 4),)
    memory.checked(
        SimpleNamespace(plan=plan), make_fx(program)(*inputs), inputs
    )


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda plan: dict.fromkeys(plan, 0), "in the same bytes"),
        (lambda plan: {}, "give each such node its offset"),
        (lambda plan: {n: o + 4 for n, o in plan.items()}, "a multiple of 64"),
        (lambda plan: {n: o - 64 for n, o in plan.items()}, "not negative"),
        (lambda plan: [], "must return a dict"),
    ],
)
def test_a_wrong_plan_is_told(change: Anything, told: str) -> None:
    _planned(lambda plan: plan)
    with pytest.raises(Mistake, match=told):
        _planned(change)


# --- wrong gradients --------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "change", "told"),
    [
        ("sub", lambda found: (found[0], found[0]), "Gradient 1 differs"),
        ("sub", lambda found: found[:1], "a gradient for each of the 2"),
        ("broadcast", lambda found: (*found[:2], found[0]), "have the shape"),
    ],
)
def test_a_wrong_gradient_is_told(
    case: str, change: Anything, told: str
) -> None:
    ours = _ours("gradient")

    def wrong(gm: Anything, *inputs: torch.Tensor) -> Anything:
        made = ours.gradient(gm, *inputs)
        output = made.graph.output_node()
        output.args = (change(output.args[0]),)
        made.recompile()
        return made

    gradient.checked(ours, *gradient.ONE[case])
    with pytest.raises(Mistake, match=told):
        gradient.checked(SimpleNamespace(gradient=wrong), *gradient.ONE[case])


def _by_hand(*values: torch.Tensor) -> torch.Tensor:
    """A function of the learner, which may do anything."""
    return values[0]


def _changed(case: str, change: Anything) -> None:
    """Check our gradient of a case after a change of its module."""
    ours = _ours("gradient")

    def changed(gm: Anything, *inputs: torch.Tensor) -> Anything:
        made = ours.gradient(gm, *inputs)
        with made.graph.inserting_before(made.graph.output_node()):
            change(made, *inputs)
        made.recompile()
        return made

    gradient.checked(SimpleNamespace(gradient=changed), *gradient.ONE[case])


@pytest.mark.parametrize(
    "call", [torch.autograd.grad, torch.func.grad, _by_hand]
)
def test_a_gradient_of_other_calls_is_refused(call: Anything) -> None:
    with pytest.raises(Mistake, match="a graph of plain operators"):
        _changed(
            "exp", lambda made, _: made.graph.call_function(call, ((), ()))
        )


def test_a_gradient_for_one_value_is_refused() -> None:
    def keep(made: Anything, x: torch.Tensor) -> None:
        made.register_buffer("kept", torch.exp(x))
        kept = made.graph.get_attr("kept")
        made.graph.output_node().args = ((kept,),)

    with pytest.raises(Mistake, match="differs from the one"):
        _changed("exp", keep)


def test_the_derivative_at_the_kink_is_checked() -> None:
    def one_there(made: Anything, _: torch.Tensor) -> None:
        (x,) = made.graph.find_nodes(op="placeholder")
        step = made.graph.call_function(torch.ge, (x, 0))
        value = made.graph.call_method("float", (step,))
        made.graph.output_node().args = ((value,),)

    with pytest.raises(Mistake, match="differs from the one"):
        _changed("the kink of relu", one_there)
