"""Passes: a module cut in stages, run here and in several processes."""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
import tracemalloc

import pytest
import torch
from torch import nn

import fx
from fx.passes import pipeline
from fx.passes.pipeline import cut_in_stages, lightest_cuts
from fx.use_def.values import AnyValue
from tests.checks.sources import ROOT
from tests.library.memory_programs import outcome, program, recipe_of
from tests.zoo import ZOO, Network, borrow

CUT = ("resnet18", "unet", "bert_base", "dlrm", "fpn")


def in_turn(stages: list[fx.GraphModule], *values: AnyValue) -> AnyValue:
    """Run stages one after another, each with copies of what it takes."""
    result: AnyValue = values
    for stage in stages:
        taken = result if isinstance(result, tuple | list) else (result,)
        result = stage(*[value.clone() for value in taken])
    return result


@pytest.mark.parametrize(
    "network",
    [each for each in ZOO if each.name in CUT],
    ids=lambda one: one.name,
)
def test_networks(network: Network) -> None:
    with borrow(network, training=False) as model:
        gm = fx.symbolic_trace(model)
        stages = cut_in_stages(gm, 3, network.inputs())
        assert len(stages) == 3
        paths = [name for each in stages for name, _ in each.named_parameters()]
        assert sorted(paths) == sorted(dict(gm.named_parameters()))
        found, expected = (
            in_turn(stages, *network.inputs()),
            model(*network.inputs()),
        )
        torch.testing.assert_close(
            [*found] if isinstance(expected, tuple) else found,
            [*expected] if isinstance(expected, tuple) else expected,
        )
        for each in stages:
            each.graph.lint()


@pytest.mark.parametrize(
    "arguments",
    [
        "resnet 2 gpipe float64",
        "resnet 4 1f1b float32",
        "bert 2 gpipe float32",
        "bert 4 1f1b float64",
    ],
)
def test_processes_train_as_one_does(arguments: str) -> None:
    run = python("-m tests.library.pipeline_processes", arguments)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "processes as in one" in run.stdout


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with some arguments, each of which may be several words."""
    return subprocess.run(
        [sys.executable, *" ".join(arguments).split()],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_demo() -> None:
    alone = python("-m fx.pipeline")
    assert alone.returncode == 2
    assert "torchrun --nproc-per-node 2" in alone.stdout
    launcher = "-m torch.distributed.run --standalone --nproc-per-node 2"
    run = python(launcher, "-m fx.pipeline")
    assert run.returncode == 0, run.stderr
    assert "process 0: 4 calls" in run.stdout
    assert "the same in one:" in run.stdout


def test_cutting_runs_nothing() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Dropout())
    gm, x = fx.symbolic_trace(model), torch.randn(4, 2)
    before, drawn = str(model.state_dict()), torch.get_rng_state()
    cut_in_stages(gm, 2, [x])
    assert str(model.state_dict()) == before
    assert torch.equal(torch.get_rng_state(), drawn)


def test_what_a_stage_takes_is_known_without_running_it() -> None:
    gm = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1)))
    first, second = cut_in_stages(gm, 2, [torch.ones(5, 2)])
    (given,), (taken,) = first.meta["gives"], second.meta["takes"]
    assert (given.shape, taken.shape) == ((5, 3), (5, 3))
    assert given.is_meta
    assert given.requires_grad
    assert not first.meta["takes"][0].requires_grad


# -- where it is cut ---------------------------------------------------------


def names(stages: list[fx.GraphModule]) -> list[list[str]]:
    """The calls of each stage."""
    return [
        [node.name for node in each.graph.nodes if node.op.startswith("call")]
        for each in stages
    ]


def test_no_stage_is_heavier_than_it_must_be() -> None:
    drawn = random.Random(0)
    for _ in range(200):
        length = drawn.randint(2, 8)
        loads = [drawn.choice((0, 1, 2, 3, 8, 50)) for _ in range(length)]
        weights = [0.0, *itertools.accumulate(map(float, loads))]
        places = [n for n in range(1, length) if drawn.random() < 0.8]
        count = drawn.randint(1, len(places) + 1)

        def heaviest(
            cuts: tuple[int, ...], to: tuple[float, ...] = tuple(weights)
        ) -> float:
            bounds = [0, *cuts, len(to) - 1]
            return max(to[b] - to[a] for a, b in itertools.pairwise(bounds))

        found = tuple(lightest_cuts(weights, places, count))
        assert len(found) == count - 1
        assert list(found) == sorted({*found} & {*places})
        best = min(map(heaviest, itertools.combinations(places, count - 1)))
        assert heaviest(found) <= best + 1e-6


def test_it_is_cut_by_any_weight() -> None:
    gm = fx.symbolic_trace(lambda x: x.exp().neg().cos().sin())
    times = {"exp": 1.0, "neg": 1.0, "cos": 1.0, "sin": 3.0}
    stages = cut_in_stages(
        gm, 2, [torch.ones(2)], weigh=lambda node: times[node.name]
    )
    assert names(stages) == [["exp", "neg", "cos"], ["sin"]]


def test_only_so_much_goes_through() -> None:
    def forward(x: AnyValue) -> AnyValue:
        wide = x.repeat(100).neg()
        return wide.sum().exp().cos()

    gm = fx.symbolic_trace(forward)
    stages = cut_in_stages(
        gm, 2, [torch.ones(2)], weigh=lambda node: node.name == "neg", most=16
    )
    assert names(stages)[0][-1] in ("sum_1", "exp")
    with pytest.raises(ValueError, match="can be cut at 0 places"):
        cut_in_stages(gm, 2, [torch.ones(2)], most=1)


def test_numbers_do_not_go_through() -> None:
    def forward(x: AnyValue) -> AnyValue:
        length = x.size(0)
        y = x.exp().neg()
        return (y * length).cos()

    gm = fx.symbolic_trace(forward)
    stages = cut_in_stages(gm, 2, [torch.ones(2)], weigh=lambda node: 1)
    assert names(stages) == [["size", "exp", "neg", "mul"], ["cos"]]
    with pytest.raises(ValueError, match="can be cut at 1 places"):
        cut_in_stages(gm, 3, [torch.ones(2)])


def test_something_goes_through_each_cut() -> None:
    class FromAWeight(nn.Module):
        """Its input is of no use: nothing goes into `exp`."""

        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2))

        def forward(self, x: AnyValue) -> AnyValue:
            x.neg()
            return self.weight.exp().cos()

    gm = fx.symbolic_trace(FromAWeight())
    example = [torch.ones(2)]
    stages = cut_in_stages(gm, 2, example, weigh=lambda node: 1)
    assert names(stages) == [["neg", "exp"], ["cos"]]
    torch.testing.assert_close(in_turn(stages, *example), gm(*example))
    with pytest.raises(ValueError, match="can be cut at 1 places"):
        cut_in_stages(gm, 3, example)


def test_a_write_stays_with_the_memory() -> None:
    def forward(x: AnyValue) -> AnyValue:
        y = torch.add(x, 1)
        z = y.view(-1)
        w = torch.neg(z)
        z.mul_(3)
        return torch.exp(y) + w

    gm = fx.symbolic_trace(forward)
    stages = cut_in_stages(gm, 2, [torch.ones(2)], weigh=lambda node: 1)
    assert names(stages) == [["add", "view", "neg", "mul_"], ["exp", "add_1"]]
    x = torch.ones(2)
    torch.testing.assert_close(in_turn(stages, x), forward(x))


# -- what cannot be cut ------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "tensors"),
    [
        ("gpt2", "lm_head.weight .* there as wte.weight"),
        ("siamese", "left.features.0.weight"),
    ],
)
def test_shared_parameters_are_refused(name: str, tensors: str) -> None:
    (network,) = [each for each in ZOO if each.name == name]
    with borrow(network, training=False) as model:
        gm = fx.symbolic_trace(model)
        with pytest.raises(ValueError, match=tensors):
            cut_in_stages(gm, 2, network.inputs())
        assert len(cut_in_stages(gm, 1, network.inputs())) == 1


def test_a_write_into_the_input_is_refused() -> None:
    def forward(x: AnyValue) -> AnyValue:
        x.add_(1)
        return torch.exp(x).neg()

    gm = fx.symbolic_trace(forward)
    with pytest.raises(ValueError, match="add_ may change what another stage"):
        cut_in_stages(gm, 2, [torch.ones(2)])


@pytest.mark.parametrize("result", [{"a": 1}, [[]], 3], ids=repr)
def test_results_that_cannot_be_sent(result: AnyValue) -> None:
    gm = fx.symbolic_trace(lambda x: (x.exp().neg(), result))
    with pytest.raises(ValueError, match="cannot be sent"):
        cut_in_stages(gm, 2, [torch.ones(2)])


def test_nested_inputs_are_refused() -> None:
    gm = fx.symbolic_trace(
        lambda d: d["x"].exp().neg(), concrete_args={"d": {"x": fx.PH}}
    )
    with pytest.raises(ValueError, match="takes nested inputs apart"):
        cut_in_stages(gm, 2, [torch.ones(2)])


def test_long_ways_are_counted_and_not_listed() -> None:
    graph = fx.Graph()
    value = graph.placeholder("x")
    made = []
    for _ in range(1500):
        made.append(value := graph.call_function(torch.relu, (value,)))
    for one in reversed(made):
        value = graph.call_function(torch.add, (value, one))
    graph.output(value)
    calls = [node for node in graph.nodes if node.op == "call_function"]
    tracemalloc.start()
    try:
        spans = pipeline._spans(graph, calls)
        fitting = pipeline._fitting(spans, len(calls), None)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(fitting) > 3000
    assert most < 1000 * len(calls)


@pytest.mark.parametrize("seed", range(3))
def test_any_program_in_stages(seed: int) -> None:
    drawn, cut = random.Random(seed), 0
    for _ in range(120):
        returned = [drawn.randrange(12) for _ in range(drawn.randint(1, 3))]
        gm = fx.GraphModule({}, program(recipe_of(drawn, 12), returned))
        heavy = {node: drawn.random() for node in gm.graph.nodes}
        count = drawn.choice((2, 2, 3, 4))
        try:
            stages = cut_in_stages(
                gm, count, [torch.ones(4)], weigh=heavy.__getitem__
            )
        except ValueError as error:
            assert "may change" in str(error) or "places" in str(error)
            continue
        cut += 1

        def run(x: AnyValue, stages: list[fx.GraphModule] = stages) -> AnyValue:
            return in_turn(stages, x)

        assert outcome(run)[0] == outcome(gm)[0], f"{gm.code}\n{names(stages)}"
    assert cut > 20
