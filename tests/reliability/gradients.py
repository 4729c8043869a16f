"""Whether passes that merge or move calls leave gradients as they were.

A pass may keep every value and still change what is learned: a result that no
loss uses must give no gradient, since zeros become NaN behind `sqrt(0)`, and
what needed no gradient must not need one afterwards.  Each case is a random
graph of products, sums and roots of three parameters, one of which may be
frozen, and a loss of some of its results.  Compared are the results, which of
them need gradients, and the gradients.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final, TypeAlias

import torch
import torch.fx
from torch import nn

import fx
from tests.reliability.moving import PASSES, Pass
from tests.reliability.part import Outcome, Part, Plant

Anything: TypeAlias = Any


class Owner(nn.Module):
    """Three matrices; a root of the first has no gradient at zero."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        # Integers, so that results are exact in whatever order.
        self.u = nn.Parameter(torch.zeros(2, 2))
        self.v = nn.Parameter(torch.tensor([[1.0, 2.0], [0.0, 1.0]]))
        self.w = nn.Parameter(torch.tensor([[1.0, 0.0], [-1.0, 1.0]]))
        rng.choice((self.v, self.w)).requires_grad_(rng.random() < 0.5)


def graph_of(lib: Anything, rng: random.Random) -> Anything:
    """A random graph, all of whose values are 2 by 2."""
    graph = lib.Graph()
    x = graph.placeholder("x", torch.Tensor)
    values = [x, graph.call_function(torch.sqrt, (graph.get_attr("u"),))]
    for _ in range(rng.randint(3, 9)):
        value, other = rng.choice(values), rng.choice(values)
        kind = rng.random()
        if kind < 0.6:
            weight = graph.get_attr(rng.choice("vvw"))
            values.append(graph.call_function(torch.matmul, (value, weight)))
        elif kind < 0.8:
            values.append(graph.call_function(torch.add, (value, other)))
        else:
            name = rng.choice(("neg", "detach", "clone"))
            values.append(graph.call_method(name, (value,)))
    graph.output(tuple(rng.sample(values[2:], rng.randint(2, 3))))
    return graph


def _merged(lib: Anything, gm: Anything, rng: random.Random) -> Anything:
    module = import_module(f"{lib.__name__}.experimental.merge_matmul")
    return module.merge_matmul(gm)


def _traced_again(lib: Anything, gm: Anything, rng: random.Random) -> Anything:
    return lib.symbolic_trace(_merged(lib, gm, rng))


def _normalized(lib: Anything, gm: Anything, rng: random.Random) -> Anything:
    module = import_module(f"{lib.__name__}.experimental.normalize")
    return module.NormalizeArgs(gm).transform()


def _folded(gm: Anything) -> bool:
    """Whether constants were folded, where gradients are known to end."""
    return getattr(gm, "const_subgraph_module", None) is not None


ALL: Final[tuple[Pass, ...]] = (
    *[_merged] * 3,
    *(_traced_again, _normalized, *PASSES),
)


def learned(gm: Anything, owner: Owner, seed: int) -> str:
    """What a module returns, and the gradients of a loss of that."""
    rng = random.Random(seed)
    owner.zero_grad()
    x = torch.arange(4.0).view(2, 2).requires_grad_(rng.random() < 0.3)
    found = gm(x)
    needing = [one for one in found if one.requires_grad]
    needs = [one.requires_grad for one in found]
    for one in needing:
        if rng.random() < 0.6:
            one.sum().backward(retain_graph=True)
    gradients = [x.grad, *(part.grad for part in owner.parameters())]
    shown = [None if one is None else one.tolist() for one in gradients]
    return f"{[one.tolist() for one in found]}, {needs}, {shown}"


def difference(lib: Anything, seed: int) -> tuple[str, bool]:
    """What a pass changed, and whether it changed the code."""
    rng = random.Random(seed)
    owner = Owner(rng)
    gm = lib.GraphModule(owner, graph_of(lib, rng))
    change, code = rng.choice(ALL), gm.code
    before = learned(gm, owner, seed)
    try:
        new = change(lib, gm, rng)
    except (RuntimeError, AssertionError):  # a cycle
        return "", False
    except Exception as error:
        return f"{change.__name__}: {error}{code}", False
    if _folded(new):
        return "", False
    try:
        after = learned(new, owner, seed)
    except Exception as error:
        return f"{type(error).__name__}: {error}{code}", True
    if before == after:
        return "", new.code != code
    return f"{change.__name__}: {before} became {after}{code}{new.code}", True


def run(seed: int, cases: int) -> Iterator[Outcome]:
    """Change `cases` programs."""
    rng, changed = random.Random(seed), 0
    for _ in range(cases):
        case = rng.randrange(10**9)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours, is_changed = difference(fx, case)
            theirs, _ = difference(torch.fx, case)
        changed += is_changed
        yield Outcome(f"seed {case}", ours, theirs)
    if changed < cases // 4:
        yield Outcome(f"seed {seed}", f"only {changed} of {cases} changed")


PART = Part(
    "gradients",
    "results, which of them need gradients, and the gradients of a loss, "
    "before and after calls are merged, cut apart or normalized",
    run,
    share=100,
    long=50_000,
    plants=(
        Plant(
            "fx/experimental/merge_matmul.py",
            "if right is not None and result.requires_grad:",
            "if False:",
            "a product that no loss uses gets a gradient of zeros",
        ),
        Plant(
            "fx/experimental/merge_matmul.py",
            'parts.meta["is_wrapped"] = True',
            "pass",
            "a trace looks into what takes a product apart",
        ),
    ),
)
