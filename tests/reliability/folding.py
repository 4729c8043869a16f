"""Whether a module computes the same once its constants are folded.

Each case is a random graph of few calls, most of whose values come from two
tensors of the module.  It is called three times, folded and as it was, and
perhaps under autocast.  In between the caller writes into what was returned,
into the weights, puts others in their place or data, or converts the module; so
what is folded must be new memory where that shows, and up to date.  Compared
are outputs, inputs, the module's state, and the state of the random generator.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, TypeAlias

import torch
import torch.fx
from torch import nn

import fx
from tests.library.memory_programs import flat
from tests.reliability.part import Outcome, Part, Plant

Anything: TypeAlias = Any


class Owner(nn.Module):
    """The module whose tensors and children the graphs use."""

    def __init__(self, training: bool) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.w = nn.Parameter(torch.rand(4), requires_grad=False)
        self.register_buffer("b", torch.rand(4))
        self.relu_, self.drop = nn.ReLU(inplace=True), nn.Dropout(0.5)
        self.train(training)


STEPS: tuple[tuple[str, Anything, int], ...] = (
    *[("call_function", torch.add, 2), ("call_function", torch.mul, 2)] * 3,
    *[("call_function", torch.neg, 1)] * 6,
    *[("call_method", name, 1) for name in ("view_as", "detach", "clone")] * 2,
    ("call_method", "add_", 2),
    ("call_method", "mul_", 2),
    ("call_method", "neg_", 1),
    ("call_function", torch.rand_like, 1),
    ("call_module", "relu_", 1),
    ("call_module", "drop", 1),
    ("call_function", flat, 1),
)
"""Opcode, target and number of arguments of the calls."""


def graph_of(lib: Anything, rng: random.Random) -> Anything:
    """A random graph, all of whose values are four numbers."""
    graph = lib.Graph()
    x = graph.placeholder("x", torch.Tensor)
    values: list[Anything] = []
    if rng.random() < 0.2:  # a view, and a write that it shows
        values.append(graph.call_method("detach", (graph.get_attr("b"),)))
        graph.call_method("add_", (graph.get_attr("b"), 1))
    for _ in range(rng.randint(2, 8)):
        if rng.random() < 0.5 or not values:
            values.append(graph.get_attr(rng.choice("wb")))
        if rng.random() < 0.2:  # what autocast computes in another dtype
            rows = graph.call_function(torch.outer, (values[-1], values[-1]))
            values.append(graph.call_function(torch.matmul, (rows, values[-1])))
        late = rng.choice((1, 3))
        args = tuple(rng.choice(values[-late:]) for _ in range(2))
        op, target, count = rng.choice(STEPS)
        if target == "view_as":
            args, count = (args[0], args[0]), 2
        values.append(graph.create_node(op, target, args[:count], {}))
        if rng.random() < 0.3:
            one = rng.choice(values)
            values.append(graph.call_function(torch.add, (x, one)))
    last = [graph.call_function(torch.add, (x, rng.choice(values)))]
    graph.output((*last, *rng.choices(values, k=rng.randint(0, 1))))
    return graph


def history(gm: Anything, owner: Owner, seed: int) -> list[str]:
    """What can be seen of three calls of a module, and between them."""
    rng, seen = random.Random(seed), []
    torch.manual_seed(3)
    for _ in range(3):
        x = torch.arange(4.0)
        is_cast = rng.random() < 0.3
        with torch.autocast("cpu", torch.bfloat16, enabled=is_cast):
            found = gm(x)
        drawn = int(torch.get_rng_state().sum())
        seen.append(repr((found, x, [*owner.state_dict().values()], drawn)))
        for one in found:
            if rng.random() < 0.5:
                one.add_(1)
        if rng.random() < 0.3:
            owner.w.mul_(0.5)
        if rng.random() < 0.3:
            owner.w.data = owner.w + 1
        if rng.random() < 0.3:
            held = owner.state_dict()
            owner.load_state_dict({name: held[name] * 0.5 for name in held})
        if rng.random() < 0.2:
            owner.w = nn.Parameter(owner.w * 3, requires_grad=False)
            gm.w = owner.w
        if rng.random() < 0.2:
            kind = rng.choice((torch.float64, torch.bfloat16))
            owner.to(kind)
            gm.to(kind)
    # A value that is kept is printed as a Parameter.
    return [text.replace("Parameter containing:\n", "") for text in seen]


def traced(lib: Anything, seed: int) -> tuple[Anything, Owner]:
    """The module of a case, and the owner of its tensors."""
    rng = random.Random(seed)
    owner = Owner(rng.random() < 0.5)
    return lib.GraphModule(owner, graph_of(lib, rng)), owner


def difference(lib: Anything, seed: int) -> tuple[str, bool]:
    """What folding changed, and whether there was any."""
    fold = import_module(f"{lib.__name__}.experimental.const_fold")
    before = history(*traced(lib, seed), seed)
    gm, owner = traced(lib, seed)
    code = gm.code
    try:
        folded = fold.split_const_subgraphs(gm)
        after = history(folded, owner, seed)
    except Exception as error:
        return f"{type(error).__name__}: {error}{code}", True
    wrong = "" if before == after else f"{before} became {after}{code}"
    return wrong, folded.const_subgraph_module is not None


def folding(
    difference: Callable[[Anything, int], tuple[str, bool]],
    seed: int,
    cases: int,
) -> Iterator[Outcome]:
    """Compare programs before and after they are folded, in both libraries.

    Args:
        difference: what folding changed in a library's program of a seed, and
            whether there was any.
        seed: says which programs.
        cases: how many. A twentieth of them has to be folded.
    """
    rng, folded = random.Random(seed), 0
    for _ in range(cases):
        case = rng.randrange(10**9)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours, is_folded = difference(fx, case)
            theirs, _ = difference(torch.fx, case)
        folded += is_folded
        yield Outcome(f"seed {case}", ours, theirs)
    if folded < cases // 20:
        yield Outcome(f"seed {seed}", f"only {folded} of {cases} were folded")


def run(seed: int, cases: int) -> Iterator[Outcome]:
    """Fold the constants of `cases` programs."""
    return folding(difference, seed, cases)


FOLD = "fx/experimental/const_fold.py"

PART = Part(
    "folding",
    "three calls of a module, constants folded or not",
    run,
    share=150,
    long=100_000,
    plants=(
        Plant(
            FOLD,
            """        self._share()
        gm = self""",
            "        gm = self",
            "a weight that is replaced is that of one graph only",
        ),
        Plant(
            FOLD,
            "and not (is_view and may_write)",
            "",
            "a view of an attribute that is written is folded",
        ),
        Plant(
            FOLD,
            'and (node.op == "get_attr" or not must_be_new)',
            "",
            "what is returned or written is folded",
        ),
        Plant(
            FOLD,
            "needs = (*inputs, *before.get(node, ()))",
            "needs = inputs",
            "a call is folded that must stay behind a write",
        ),
        Plant(
            FOLD,
            "if self._stamp != self._now()[1]:",
            "if False:",
            "a weight that changes is not noticed",
        ),
        Plant(
            FOLD,
            "if known != stamp or vars(view) is not vars(self):",
            "if known is None or vars(view) is not vars(self):",
            "under autocast a weight that changes is not noticed",
        ),
        Plant(
            FOLD,
            "if state == self._state:",
            "if True:",
            "what was folded without autocast is used under it",
        ),
        Plant(
            FOLD,
            ", part.data_ptr()",
            "",
            "other memory of a weight is not noticed",
        ),
    ),
)
