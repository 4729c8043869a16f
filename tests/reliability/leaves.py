"""Programs that change the modules they call, keep what they get, or ask `is`.

A program is a forward of a few lines over a layer, a dropout, a norm and a leaf
of its own.  Some lines change a module before it is called: its weight, its
mode, a setting, a hook; others keep a tensor in a list or a cache, or ask
whether two names are one object.  `fx.trace` records it on an example, with and
without the trial.  Graph and program must then give the same on that and on
other inputs, or the trace or the call is refused; and the program, called
again, gives tensors with data.
"""

from __future__ import annotations

import copy
import functools
import random
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrizations

import fx
from tests.reliability.part import Outcome, Part, Plant
from tests.reliability.traced import Refused, called, graph_of, searched, wrong

AnyValue: TypeAlias = Any


class Own(nn.Module):
    """A leaf of the user's, whose result may be nested by its input."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.full((4,), 1.5))
        self.add = torch.ones(4)

    def forward(self, x: torch.Tensor) -> AnyValue:
        y = x * self.scale + self.add
        return (y, None) if x.shape[0] != 3 or x.sum() > 0 else (y, y)


@functools.lru_cache(None)
def table(size: int) -> torch.Tensor:
    """A table that is made once."""
    return torch.arange(size) * 2.0


class Net(nn.Module):
    """The modules of a program."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.drop = nn.Dropout(0.5)
        self.relu = nn.ReLU(inplace=True)
        self.norm = nn.BatchNorm1d(4)
        self.weighted = parametrizations.weight_norm(nn.Linear(4, 4))
        self.own = Own()


CHANGES: Final = (
    "self.drop.eval()",
    "self.drop.train()",
    "self.drop.p = 0.0",
    "self.norm.eval()",
    "self.norm.momentum = 0.5",
    "self.layer.bias = None",
    "w = self.layer._parameters.pop('weight'); self.layer.weight = w * n",
    "self.own.add = x.sum(0)",
    "self.relu.inplace = False",
    "self.norm.running_mean = x.mean(0).detach()",
    "self.layer.register_forward_hook(lambda m, i, o: o * 2)",
    "self.layer.requires_grad_(False)",
    "self.layer.weight.data.mul_(2)",
    "self.own.scale.requires_grad_(False)",
)
"""What may happen to a module before it is called."""

CALLS: Final = (
    *(
        "self.layer({a})",
        "self.drop({a})",
        "self.norm({a})",
        "self.own({a})[0]",
    ),
    *("self.relu({a})", "self.weighted({a})", "{a} + 1", "{a}.mul_(2)"),
    "torch.func.functional_call(self.layer, {{'bias': {a}.sum(0)}}, ({a},))",
    *("functional.relu({a}, inplace=True)", "{a}.float()", "{a}.to({b}.dtype)"),
    *("torch.add({a}, 1, out={a}.detach())", "{a}.clone()", "{a}.view_as({a})"),
    *("{a} * table({a}.shape[1])", "{a} * len(kept)", "{a} * table(4)"),
    "{a} + (1 if self.own({a})[1] is None else 2)",
    "{a} * (2 if {a} is {b} else 3)",
    *("{a} * (2 if {a} is self.own.scale else 3)", "{a}.type_as({b})"),
)
"""What a line may compute."""

KEEPS: Final = (
    *("kept.append({a})", "kept.append({a}.shape[0])", "kept.append(1)"),
    *("self.last = {a}", "self.seen = ({a}, 1)"),
)
"""What a line may keep."""


def text(rng: random.Random) -> str:
    """A program."""
    names, lines = ["x", "y"], []
    for number in range(rng.randint(2, 6)):
        given = {"a": rng.choice(names), "b": rng.choice(names)}
        kind = rng.random()
        if kind < 0.2:
            lines.append(rng.choice(CHANGES))
        elif kind < 0.24:
            lines.append(rng.choice(KEEPS).format(**given))
        else:
            form = rng.choice(CALLS).format(**given)
            lines.append(f"v{number} = {form}")
            names.append(f"v{number}")
    lines.append(f"return [{', '.join(names)}]")
    first = "def forward(self, x, y, n=2):"
    return "\n    ".join([first, *lines])


def made(program: str) -> tuple[nn.Module, list[AnyValue]]:
    """A module that runs a program, and the list in which it keeps."""
    kept: list[AnyValue] = []
    names: dict[str, AnyValue] = {"torch": torch, "functional": functional}
    names |= {"table": table, "kept": kept, "__name__": "made"}
    exec(compile(program, "made.py", "exec"), names)
    torch.manual_seed(0)
    kind = type("Made", (Net,), {"forward": names["forward"]})
    return kind(), kept


def inputs(rng: random.Random) -> tuple[torch.Tensor, ...]:
    """Two inputs, perhaps one tensor."""
    size, sign = rng.choice((2, 3, 3, 5)), rng.choice((-1, 1))
    x = torch.arange(1.0, 1 + 4 * size).reshape(size, 4) * sign
    if rng.random() < 0.15:
        x = x.double()
    y = x if rng.random() < 0.1 else x + 1
    return x, y.clone() if y is not x and rng.random() < 0.5 else y


def judged(rng: random.Random, refused: Refused) -> Iterator[Outcome]:
    """A program, traced once and called some times."""
    program, example, check = text(rng), inputs(rng), rng.random() < 0.5
    case = (
        f"{program}\n# traced with {[*map(tuple, (t.shape for t in example))]}"
    )
    table.cache_clear()
    if isinstance(called(made(program)[0], example, {}), Exception):
        return
    net, kept = made(program)
    gm = graph_of(
        case,
        refused,
        lambda: fx.trace(net, *copy.deepcopy(example), check=check),
    )
    if isinstance(gm, Outcome):
        yield gm
        return
    if gm is None:
        held = [*kept, net.__dict__.get("last"), table(4)]
        plain = torch.Tensor, int, type(None)
        fakes = [t for t in held if type(t) not in plain]
        yield Outcome(case, f"{fakes} is left" if fakes else "")
        return
    for _ in range(4):
        given = inputs(rng)
        fresh, _ = made(program)  # as it was when it was traced
        found = wrong(copy.deepcopy(gm), fresh, *given, is_lax=True)
        yield Outcome(f"{case}\n# {check=} {given}", found)


PART = Part(
    "leaves",
    "programs that change the modules they call, keep tensors or ask `is`, "
    "and their graphs by fx.trace",
    functools.partial(searched, judged),
    share=60,
    long=8_000,
    plants=(
        Plant(
            "fx/extra/example_trace/recorder.py",
            "        return not is_changed",
            "        return True",
            "a leaf that the program has changed is called as it was",
        ),
        Plant(
            "fx/extra/example_trace/recorder.py",
            "self.call(of_structure, node, structure_of(result), *opened)",
            "node",
            "what a leaf returns is not compared",
        ),
        Plant(
            "fx/extra/example_trace/trial.py",
            "    left = made.alive()\n    if left and",
            "    left: list[AnyValue] = []\n    if left and",
            "what outlives a trace is not looked for",
        ),
    ),
)
