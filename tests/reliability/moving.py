"""Whether passes that move or merge calls keep what modules write in order.

The value of a call says nothing of the state that it changes: a batch norm in
training writes its statistics, which an attribute, a second path, and another
module can lead to; a module of a user's own class counts its calls, in place or
by binding another tensor.  Each case is a random graph of such calls and of
reads and writes, cut or merged at random.  Compared are the results of two
calls and the state afterwards; a cut that is refused is no fault.
"""

from __future__ import annotations

import operator
import random
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Final, TypeAlias

import torch
import torch.fx
from torch import nn

import fx
from tests.reliability.part import Outcome, Part, Plant

Anything: TypeAlias = Any


class Counts(nn.Module):
    """Counts its calls, in place or with another tensor each time."""

    def __init__(self, in_place: bool) -> None:
        super().__init__()
        self.in_place, self.count = in_place, torch.zeros(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.in_place:
            self.count += 1
        else:
            self.count = self.count + 1
        return x * 1


class Owner(nn.Module):
    """Modules that change their state, which has several names."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.reads = nn.BatchNorm1d(2), nn.BatchNorm1d(2).eval()
        mean = self.reads.running_mean = torch.zeros(2)
        self.norm.running_mean = mean
        self.again = self.norm
        self.other = nn.BatchNorm1d(2)
        self.kept = mean.view(2)
        self.inner = nn.Sequential(nn.Linear(2, 2), self.norm)
        self.adds, self.binds = Counts(True), Counts(False)
        self.relu = nn.ReLU(inplace=True)
        self.relus = nn.Sequential(nn.ReLU(inplace=True))
        self.weight = nn.Parameter(torch.ones(2))
        self.view = self.weight.detach()[:1]
        self.requires_grad_(False)


MODULES: Final = (
    *("norm", "norm", "norm", "reads", "reads", "again"),
    *("other", "inner", "adds", "binds"),
    *("relu", "relu", "relus"),
)
READ: Final = (
    *("norm.running_mean", "again.running_mean", "inner.1.running_var"),
    *("reads.running_mean", "kept", "weight", "view"),
    *("adds.count", "norm.running_mean"),
)


def graph_of(lib: Anything, rng: random.Random) -> Anything:
    """A random graph; all calls take and give two columns."""
    graph = lib.Graph()
    # A write into a value is followed only where the value is a tensor.
    values = [graph.placeholder("x", rng.choice((torch.Tensor, None)))]
    add = rng.choice((torch.add, operator.add))
    found = []
    modules, read = rng.sample(MODULES, 2), rng.sample(READ, 1)
    for _ in range(rng.randint(3, 9)):
        kind, value = rng.random(), rng.choice(values)
        if kind < 0.35:
            values.append(graph.call_module(rng.choice(modules), (value,)))
        elif kind < 0.4:
            weight = graph.get_attr(rng.choice(("weight", "view")))
            graph.call_method("add_", (weight, 1))
        elif kind < 0.8:
            fetched = graph.get_attr(rng.choice(read))
            found.append(graph.call_function(torch.neg, (fetched,)))
        else:
            other = rng.choice((*values, *found))
            values.append(graph.call_function(add, (value, other)))
    found.append(graph.call_function(torch.add, (values[-1], 1)))
    graph.output((*found, *values[1:]))
    return graph


# -- passes, of either library -------------------------------------------------

Pass: TypeAlias = Callable[[Anything, Anything, random.Random], Anything]


def _calls(gm: Anything) -> list[Anything]:
    return [node for node in gm.graph.nodes if node.op.startswith("call")]


def _split(lib: Anything, gm: Anything, rng: random.Random) -> Anything:
    module = import_module(f"{lib.__name__}.passes.split_module")
    parts = {node: rng.randrange(3) for node in _calls(gm)}
    cuts = sorted(rng.choices(range(len(parts)), k=2))
    if rng.random() < 0.5:
        parts = {n: sum(i > c for c in cuts) for i, n in enumerate(parts)}
    return module.split_module(gm, gm, parts.__getitem__)


def _tags(lib: Anything, gm: Anything, rng: random.Random) -> Anything:
    module = import_module(f"{lib.__name__}.passes.split_utils")
    for node in gm.graph.nodes:
        node.tag = rng.choice("ab")
    return module.split_by_tags(gm, ["a", "b"])


def _fused(lib: Anything, gm: Anything, rng: random.Random) -> Anything:
    module = import_module(f"{lib.__name__}.passes.infra.partitioner")
    support = import_module(f"{lib.__name__}.passes.operator_support")
    names = {node.name for node in _calls(gm) if rng.random() < 0.6}
    chosen = support.create_op_support(lambda _, node: node.name in names)
    finder = module.CapabilityBasedPartitioner(
        gm, chosen, allows_single_node_partition=rng.random() < 0.5
    )
    return finder.partition_and_fuse()


def _merged(lib: Anything, gm: Anything, rng: random.Random) -> Anything:
    module = import_module(f"{lib.__name__}.passes.dialect.common.cse_pass")
    return module.CSEPass()(gm).graph_module


def _folded(lib: Anything, gm: Anything, rng: random.Random) -> Anything:
    module = import_module(f"{lib.__name__}.experimental.const_fold")
    return module.split_const_subgraphs(gm)


PASSES: Final[tuple[Pass, ...]] = (
    *(_split, _split, _tags, _fused, _fused),
    *(_merged, _folded),
)


def history(gm: Anything, owner: Owner) -> str:
    """What two calls of a module return, and the state that they leave."""
    x = torch.arange(-3.0, 3.0).reshape(3, 2)
    seen = [gm(x), gm(x * 2), owner.state_dict().values()]
    state = [owner.adds.count, owner.binds.count]
    return str([[t.tolist() for t in some] for some in (*seen, state)])


def traced(lib: Anything, seed: int) -> tuple[Anything, Owner]:
    """The module of a case, and the owner of its state."""
    torch.manual_seed(1)
    owner = Owner()
    gm = lib.GraphModule(owner, graph_of(lib, random.Random(seed)))
    return gm, owner


def difference(lib: Anything, seed: int) -> tuple[str, bool]:
    """What a pass changed, and whether it was refused."""
    before = history(*traced(lib, seed))
    rng = random.Random(seed)
    gm, owner = traced(lib, seed)
    change, code = rng.choice(PASSES), gm.code
    try:
        new = change(lib, gm, rng)
    except (RuntimeError, AssertionError):  # a cycle
        return "", True
    try:
        after = history(new, owner)
    except Exception as error:
        return f"{type(error).__name__}: {error}{code}", False
    if before == after:
        return "", False
    return f"{change.__name__}: {before} became {after}{code}{new.code}", False


def run(seed: int, cases: int) -> Iterator[Outcome]:
    """Change `cases` programs."""
    rng, refused = random.Random(seed), 0
    for _ in range(cases):
        case = rng.randrange(10**9)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours, is_refused = difference(fx, case)
            theirs, _ = difference(torch.fx, case)
        refused += is_refused
        yield Outcome(f"seed {case}", ours, theirs)
    if refused > cases // 2:
        yield Outcome(f"seed {seed}", f"{refused} of {cases} were refused")


ORDER = "fx/passes/utils/call_order.py"

PART = Part(
    "moving",
    "results and state of modules that change it, before and after calls are "
    "cut apart, fused, merged or folded",
    run,
    share=40,
    long=20_000,
    plants=(
        Plant(
            ORDER,
            "fences - modules | holds_with_others(modules, graph.nodes)",
            "fences - modules",
            "a batch norm does not stay behind what reads its statistics",
        ),
        Plant(
            "fx/extra/effects/effects.py",
            "return storage.data_ptr()",
            "return id(tensor)",
            "a view of what a module writes is overlooked",
        ),
    ),
)
