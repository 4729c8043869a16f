"""Networks with BatchNorms, before and after these are folded into layers.

Each case is a random graph that calls convolutions, norms and others, some of
which have tensors in one memory, and that may fetch such a tensor and write it.
Compared are three calls, and the state that is left.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from importlib import import_module
from typing import Any, TypeAlias

import torch
from torch import nn

from tests.reliability.folding import folding
from tests.reliability.part import Outcome, Part, Plant

Anything: TypeAlias = Any

CALLS = (
    "conv norm",
    "last norm",
    "conv",
    "norm",
    "stay",
    "out",
    "drop",
    "relu",
)
"""The modules that a graph calls, one or two at a time."""

TENSORS = (
    "conv.weight",
    "last.weight",
    "last.bias",
    "norm.weight",
    "norm.running_mean",
    "norm.running_var",
    "stay.running_mean",
)
"""The tensors that a graph may fetch by another name."""


class Scales(nn.Conv1d):
    """A layer of a user, which changes its weight when it is called."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            self.weight.mul_(0.5)
        return super().forward(x)


def network(seed: int) -> Anything:
    """The modules of a case, some of which have tensors in one memory."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    root: Anything = nn.Module()
    root.conv = nn.Conv1d(3, 3, 1, bias=rng.random() < 0.5)
    root.last, root.out = nn.Conv1d(3, 3, 1), Scales(3, 3, 1)
    root.norm, root.stay = nn.BatchNorm1d(3), nn.BatchNorm1d(3)
    root.drop, root.relu = nn.Dropout(0.5), nn.ReLU(rng.random() < 0.5)
    root.norm.running_mean.uniform_()
    root.eval()
    root.stay.train(rng.random() < 0.5)
    match rng.randrange(6):
        case 0:
            root.norm.running_mean = root.stay.running_mean
        case 1:
            root.norm.running_var = root.stay.running_var.view(3)
        case 2:
            root.last.weight = root.conv.weight
        case 3:
            root.out.weight = root.conv.weight
        case 4:
            root.out.weight = nn.Parameter(root.last.weight.detach())
    path, _, name = rng.choice(TENSORS).partition(".")
    shown = getattr(getattr(root, path), name).detach()
    root.shown = nn.Parameter(shown.view(-1)[:3], requires_grad=False)
    root.requires_grad_(False)
    return root


def traced(lib: Anything, seed: int) -> Anything:
    """The module of a case."""
    rng, root = random.Random(seed + 1), network(seed)
    graph = lib.Graph()
    values = [graph.placeholder("x")]
    for _ in range(rng.randint(2, 7)):
        value = values[-1] if rng.random() < 0.8 else rng.choice(values)
        for path in rng.choice(CALLS).split():
            value = graph.call_module(path, (value,))
        values.append(value)
        if rng.random() < 0.2:
            shown = graph.get_attr("shown")
            change = rng.choice(("add_", "add", "mul"))
            graph.call_method(change, (shown, 0.5))
    graph.output(tuple(rng.sample(values, 1) + values[-1:]))
    return lib.GraphModule(root, graph)


def history(gm: Anything) -> list[torch.Tensor]:
    """What can be seen of three calls of a module."""
    torch.manual_seed(3)
    seen = []
    for number in range(3):
        x = torch.rand(2, 3, 4, dtype=torch.float32) - number
        seen += [one.clone() for one in (*gm(x), x)]
    state = torch.get_rng_state().sum().float()
    return [*seen, state]


def difference(lib: Anything, seed: int) -> tuple[str, bool]:
    """What folding changed, and whether there was any."""
    optimization = import_module(f"{lib.__name__}.experimental.optimization")
    gm = traced(lib, seed)
    before = history(traced(lib, seed))
    # Neither copies: a copy by torch.fx of what is tied is another matter.
    try:
        fused = optimization.fuse(gm, inplace=True, no_trace=True)
        after = history(fused)
    except Exception as error:
        return f"{type(error).__name__}: {error}{gm.code}", True
    changed = fused.code != traced(lib, seed).code
    for one, other in zip(before, after, strict=True):
        if not torch.allclose(one, other, rtol=1e-3, atol=1e-3):
            return f"{one} became {other}{fused.code}", changed
    return "", changed


def run(seed: int, cases: int) -> Iterator[Outcome]:
    """Fold the norms of `cases` networks."""
    return folding(difference, seed, cases)


FUSION = "fx/passes/conv_bn_fusion.py"

PART = Part(
    "fusing",
    "three calls of a network, norms folded or not",
    run,
    share=60,
    long=100_000,
    plants=(
        Plant(
            FUSION,
            ' and classify(node).kind != "pure":',
            " and False:",
            "a module that is called writes a weight, and it is folded",
        ),
        Plant(
            FUSION,
            "written.isdisjoint(places_in(module))",
            "written.isdisjoint(map(id, module.parameters()))",
            "a tensor in the memory of a weight is not taken for it",
        ),
        Plant(
            FUSION,
            "[*call.users] == [node] and ",
            "",
            "a layer is folded whose result others use",
        ),
        Plant(
            FUSION,
            "if not dotted_path.exists(gm, path))",
            ")",
            "a layer takes the path of another one",
        ),
    ),
)
