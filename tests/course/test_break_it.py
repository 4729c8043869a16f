"""Answers to "break it": ours break the wrong version; others are refused."""

from __future__ import annotations

import io
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final

import pytest
from rich.console import Console

from stages import break_it, cli
from stages.manifest import stages
from tests.course.learner import Learner

HEAD: Final = """
import torch
from torch import nn
aten = torch.ops.aten

class Scaled(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.w = nn.Parameter(torch.tensor(factor))
    def forward(self, x):
        return x * self.w

def program(x):
    return torch.exp(torch.sin(torch.neg(x))) + 1

def of_two(a, b):
    return torch.neg(a), b + 1

def of_self():
    from fx.graph import Graph
    graph = Graph()
    node = graph.call_function(torch.relu, (graph.placeholder("x"),))
    node.args = (node,)
    graph.output(node)
    return graph

def summed(x):
    once = aten.neg.default(x)
    return aten.add.Tensor(once, aten.t.default(once))

ROWS = torch.arange(6.0).reshape(2, 3)
SQUARE = torch.arange(9.0).reshape(3, 3)
"""

OURS: Final = {
    1: '["x_2", "x_1", "x", "x"]',
    2: "of_self()",
    3: "(lambda x: x.sum() * x.T.shape[0], [ROWS])",
    4: "(nn.Sequential(Scaled(2.0), Scaled(3.0)), [ROWS])",
    5: "(defaulted, [ROWS])",
    6: "(lambda x: torch.neg(x) + x, [ROWS])",
    7: "(program, of_two, of_two, [ROWS])",
    8: "(summed, [SQUARE])",
}

HARMLESS: Final = {
    1: '["x", "x"]',
    2: "__import__('fx').Graph()",
    3: "(lambda x: torch.relu(x), [ROWS])",
    4: "(Scaled(2.0), [ROWS])",
    5: "(lambda x: torch.relu(x), [ROWS])",
    6: "(lambda x: torch.relu(x), [ROWS])",
    7: "(program, lambda a: torch.exp(a), lambda a: torch.exp(a), [ROWS])",
    8: "(lambda x: aten.neg.default(x), [ROWS])",
}

UNFAIR: Final = {
    2: "__import__('fx').symbolic_trace(lambda x: x + 1).graph",
    3: "(lambda x: torch.rand(3) + x.sum(), [ROWS])",
    6: "(lambda x: torch.rand(3) + x.sum(), [ROWS])",
    7: "(program, lambda a: torch.exp(a), lambda a: torch.neg(a), [ROWS])",
}


def said(
    number: int, answer: str, folder: Path, executor: ProcessPoolExecutor
) -> list[tuple[bool, str]]:
    """What is said of an answer."""
    text = f"{HEAD}\ndef defaulted(x, by=0):\n    return x + by\n"
    text += f"\ndef answer():\n    return {answer}\n"
    (folder / f"{number:02d}.py").write_text(text)
    return [*break_it.verdict(stages()[number], executor, folder)]


@pytest.mark.parametrize("number", stages())
def test_each_wrong_version_can_be_broken(
    number: int, tmp_path: Path, executor: ProcessPoolExecutor
) -> None:
    found = said(number, OURS[number], tmp_path, executor)
    assert found[-1] == (True, "You have broken it."), found


@pytest.mark.parametrize("number", HARMLESS)
def test_an_answer_that_shows_nothing(
    number: int, tmp_path: Path, executor: ProcessPoolExecutor
) -> None:
    found = said(number, HARMLESS[number], tmp_path, executor)
    assert found[-1][1].startswith("The wrong one passes, too"), found


@pytest.mark.parametrize("number", UNFAIR)
def test_an_answer_that_is_wrong_by_itself(
    number: int, tmp_path: Path, executor: ProcessPoolExecutor
) -> None:
    found = said(number, UNFAIR[number], tmp_path, executor)
    assert found[-1][1].startswith("Not this way"), found


@pytest.mark.parametrize("number", stages())
def test_an_answer_is_to_write(
    number: int, executor: ProcessPoolExecutor
) -> None:
    (line,) = break_it.verdict(stages()[number], executor)
    assert line == (
        False,
        f"to write: `answer` in {number:02d}.py. "
        f"{stages()[number].break_it.task}",
    )


def test_the_right_version_comes_first(
    learner: Learner, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = io.StringIO()
    monkeypatch.setattr(cli, "CONSOLE", Console(file=printed, width=200))
    monkeypatch.setattr(cli, "_tree", learner.tree)
    assert cli.main(["break", "07"]) == 1
    assert "Write is_convex first" in printed.getvalue()
    learner.write("is_convex")
    assert cli.main(["break", "07"]) == 1
    assert "✗ to write: `answer` in 07.py" in printed.getvalue()
