"""fx in one page: as small as it says, and right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
import torch
from torch import nn

import fx
from docs.examples import tiny_fx
from docs.machinery.literate import span_of
from docs.machinery.source import ROOT
from docs.machinery.standalone import SAVED
from tests.checks.sources import snippet
from tests.docs.test_pages import blocks

FILE = ROOT / "docs" / "examples" / "tiny_fx.py"


class Sums(nn.Module):
    """Calls of each kind, nested arguments, and a keyword."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = 1 - layer(x) / 2
        both = torch.cat([x, y], dim=1)
        return both.sum(dim=0)[1:3] @ (both[0, 1:3] * 3)


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(2, 4), torch.randn(2, 4)


def test_it_is_as_short_as_the_page_says() -> None:
    lines = snippet(FILE.read_text(encoding="utf-8")).code_lines
    assert 100 < len(lines) <= 120


def test_the_page_shows_each_line_in_one_step_and_then_all() -> None:
    *steps, whole = (
        span_of(block) for block in blocks("tiny.md") if block.name == "excerpt"
    )
    shown = Counter(
        n for span in steps for n in range(span.first, span.last + 1)
    )
    text = FILE.read_text(encoding="utf-8").splitlines()
    full = {n for n, line in enumerate(text, 1) if line.strip()}
    assert {shown[n] for n in full} == {1}
    assert full <= set(range(whole.first, whole.last + 1))


@pytest.mark.parametrize("name", SAVED)
def test_what_a_reader_saves_is_shown_whole(name: str) -> None:
    page = {"tiny_fx": "tiny.md", "noisy": "why.md"}[name]
    wanted = len(SAVED[name].read_text(encoding="utf-8").splitlines())
    spans = [span_of(b) for b in blocks(page) if b.name == "excerpt"]
    assert any((s.first, s.last) == (1, wanted) for s in spans)


def by_interpreter(graph: tiny_fx.Graph, root: nn.Module) -> torch.Tensor:
    result: torch.Tensor = tiny_fx.interpret(graph, root, *inputs())
    return result


def by_code(graph: tiny_fx.Graph, root: nn.Module) -> torch.Tensor:
    names: dict[str, Callable[..., torch.Tensor]] = {}
    exec(tiny_fx.code(graph), names)
    return names["forward"](root, *inputs())


@pytest.mark.parametrize("run", [by_interpreter, by_code])
def test_a_graph_computes_what_its_module_does(
    run: Callable[[tiny_fx.Graph, nn.Module], torch.Tensor],
) -> None:
    module = Sums()
    graph = tiny_fx.trace(module)
    torch.manual_seed(1)
    expected = module(*inputs())
    torch.manual_seed(1)
    assert torch.equal(run(graph, module), expected)


def test_it_records_what_fx_records() -> None:
    module = Sums()
    ours = fx.Tracer().trace(module)
    theirs = tiny_fx.trace(module)
    assert [(n.op, n.target) for n in theirs.nodes] == [
        (n.op, n.target) for n in ours.nodes
    ]


def test_equal_calls_are_merged_and_others_are_not() -> None:
    class Twice(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            a, b, c = x + 1, x + 1, x + 1.0
            return (a * 2) + (b * 2) + (c * 2)

    graph = tiny_fx.trace(Twice())
    before = len(graph.nodes)
    tiny_fx.merge_equal_calls(graph)
    assert before - len(graph.nodes) == 2  # one x + 1, and its product
    x = torch.ones(2)
    assert torch.equal(tiny_fx.interpret(graph, Twice(), x), Twice()(x))


def test_two_tensors_that_print_alike_are_two() -> None:
    class Constants(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            one, other = torch.ones(5000), torch.ones(5000)
            other[2500] = 2
            return (x + one) + (x + other)

    graph = tiny_fx.trace(Constants())
    tiny_fx.merge_equal_calls(graph)
    x = torch.zeros(5000)
    assert torch.equal(tiny_fx.interpret(graph, Constants(), x), Constants()(x))
