"""Whether a graph that torch hands to a program is the same, as one of fx.

Each case is a small random network: with buffers that nothing uses, constants,
shared parameters, branches, nested inputs and inputs by keyword.  It is
exported, and the module that `ExportedProgram.module` gives is compared with
what `fx.as_torch` makes of another one: what it holds, returns and refuses,
before and after an edit.  Or a backend that edits the graphs of its own
library, and no others, compiles it, by itself and under `fx.as_torch`.
"""

from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import torch
import torch.fx
from torch import nn

import fx
from fx import as_torch
from tests.reliability.part import Outcome, Part, Plant

Anything: TypeAlias = Any

STEPS: Final[dict[str, Callable[[Anything, Anything], Anything]]] = {
    "linear": lambda net, x: net.linear(x),
    "twice": lambda net, x: net.linear(net.linear(x)),
    "norm": lambda net, x: net.inner.norm(x),
    "relu": lambda net, x: torch.relu(x),
    "shift": lambda net, x: x + net.inner.shift,
    "scale": lambda net, x: x * net.scale,
    "constant": lambda net, x: x - torch.tensor([1.0, 2.0, 3.0]),
    "size": lambda net, x: x / x.shape[0],
    "branch": lambda net, x: torch.cond(
        x.sum() > 0, lambda x: torch.relu(x) + 1, lambda x: x.sin(), (x,)
    ),
}


class Net(nn.Module):
    """A network of some of the steps."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        torch.manual_seed(rng.randrange(100))
        self.linear, self.inner = nn.Linear(3, 3), nn.Module()
        self.inner.norm = nn.BatchNorm1d(3)
        self.inner.shift = nn.Parameter(torch.ones(3))
        self.scale = nn.Buffer(torch.full((3,), 2.0), persistent=False)
        if rng.random() < 0.5:
            self.unused = nn.Buffer(torch.ones(2))
        if rng.random() < 0.5:
            self.inner.unused = nn.Parameter(torch.ones(2))
        if rng.random() < 0.3:
            self.again = self.linear
        self.steps = rng.choices([*STEPS], k=rng.randint(1, 4))

    def forward(self, given: Anything, *, plus: Anything) -> Anything:
        x = given["x"][0]
        for name in self.steps:
            x = STEPS[name](self, x)
        return {"result": torch.relu(x) + plus, "parts": (x, given["x"])}


def inputs(rows: int = 2, columns: int = 3) -> Anything:
    """What a network is given."""
    x = torch.arange(float(rows * columns)).reshape(rows, columns)
    return {"x": [x - 2]}


def edited(lib: Anything, gm: Anything) -> Anything:
    """Each relu becomes a tanh, if the graph is one of the library's."""
    if not isinstance(gm, lib.GraphModule):
        return gm
    for node in gm.graph.nodes:
        if node.target is torch.relu:
            node.target = torch.tanh
        if node.target is torch.ops.aten.relu.default:
            node.target = torch.ops.aten.tanh.default
    for name, child in gm.named_children():
        setattr(gm, name, edited(lib, child))
    gm.recompile()
    return gm


def tried(act: Callable[[], Anything]) -> str:
    """What comes out, as text, or what goes wrong."""
    try:
        with torch.no_grad():
            return str(act())
    except Exception as error:
        return f"{type(error).__name__}: {error}".partition("\n")[0]


def shown(lib: Anything, gm: Anything) -> dict[str, str]:
    """What a module of torch.export holds and does."""
    plus = torch.ones(3)

    def run(module: Anything, *shape: int) -> Anything:
        return module(inputs(*shape), plus=plus)

    return {
        "state": str([*gm.state_dict()]),
        "all of it": str([name for name, _ in gm.named_parameters()])
        + str([name for name, _ in gm.named_buffers()]),
        "result": tried(lambda: run(gm)),
        "longer": tried(lambda: run(gm, 5)),
        "too long": tried(lambda: run(gm, 12)),
        "too wide": tried(lambda: run(gm, 2, 4)),
        "train": tried(gm.train),
        "copied": tried(lambda: run(copy.deepcopy(gm))),
        "edited": tried(lambda: run(edited(lib, gm))),
        "after": tried(lambda: run(lib.GraphModule(gm, gm.graph))),
    }


def compiled(lib: Anything, net: nn.Module, around: Anything) -> dict[str, str]:
    """What a network returns that a backend of its own has edited."""
    torch._dynamo.reset()
    calls: list[bool] = []

    def backend(gm: Anything, _: Anything) -> Anything:
        calls.append(isinstance(gm, lib.GraphModule))
        return edited(lib, gm).forward

    made = torch.compile(net, backend=around(backend))
    return {
        "compiled": tried(lambda: made(inputs(), plus=torch.ones(3))),
        "calls": str(calls),
    }


def difference(seed: int) -> str:
    """How what fx is given differs from what torch.fx is given."""
    rng = random.Random(seed)
    net = Net(rng).train(rng.random() < 0.3)
    if rng.random() < 0.4:
        theirs = compiled(torch.fx, copy.deepcopy(net), lambda one: one)
        ours = compiled(fx, copy.deepcopy(net), as_torch._for_program)
    else:
        rows = torch.export.Dim("rows", min=2, max=9)
        exported = torch.export.export(
            net.eval(),
            (inputs(),),
            {"plus": torch.ones(3)},
            dynamic_shapes={"given": {"x": [{0: rows}]}, "plus": None},
        )
        check = rng.random() < 0.5
        module = as_torch._converted(exported.module(check_guards=check))
        theirs = shown(torch.fx, exported.module(check_guards=check))
        ours = shown(fx, module)
    wrong = [key for key in theirs if theirs[key] != ours[key]]
    found = [f"{key}: {ours[key]}, and not {theirs[key]}" for key in wrong]
    return f"{net.steps}: {found}" if found else ""


def run(seed: int, cases: int) -> Iterator[Outcome]:
    """Hand over `cases` graphs."""
    rng = random.Random(seed)
    for _ in range(cases):
        case = rng.randrange(10**9)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield Outcome(f"seed {case}", difference(case))


HERE = "fx/as_torch.py"

PART = Part(
    "doors",
    "modules of torch.export and graphs of Dynamo, converted for a program "
    "under `fx.as_torch`: what they hold, return and refuse",
    run,
    share=12,
    long=2_000,
    plants=(
        Plant(
            HERE,
            "        if key in of_modules:\n",
            "        if False:\n",
            "an exported module loses what its graph does not use, and hooks",
        ),
        Plant(
            HERE,
            "given = _converted(gm) if is_theirs else gm",
            "given = gm",
            "a backend gets torch.fx's graph, and edits nothing",
        ),
        Plant(
            HERE,
            "            setattr(ours, name, _converted(child))\n",
            "            pass\n",
            "the bodies of a branch stay torch.fx's",
        ),
        Plant(
            HERE,
            "            has[key] = MethodType(value.__func__, ours)\n",
            "            pass\n",
            "what refuses to train is lost",
        ),
    ),
)
