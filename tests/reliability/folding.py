"""Whether a module computes the same once its constants are folded.

Each case is a random graph as in `dead_code`, most of whose values come from a
parameter and a buffer.  It is called three times, folded and as it was.  In
between the caller writes into what was returned, into the weights, or puts
other weights in their place; so what is folded must be new memory where that
shows, and up to date.  Compared are outputs, inputs, the module's state, what
users' functions saw, and the state of the random generator.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Any, TypeAlias

import torch
import torch.fx
from torch import nn

import fx
from tests.reliability.dead_code import SEEN, Program, inputs, plain
from tests.reliability.part import Outcome, Part, Plant

Anything: TypeAlias = Any


class Constants(Program):
    """A program that often begins anew from the module's tensors."""

    def any(self) -> Anything:
        """A tensor of the program, or a new one of the module's."""
        return self.state() if self.rng.random() < 0.5 else super().any()


def history(gm: Anything, owner: Anything, seed: int) -> list[Anything]:
    """What can be seen of three calls of a module, and between them."""
    SEEN.clear()
    rng, seen = random.Random(seed), []
    torch.manual_seed(3)
    for _ in range(3):
        given = inputs()
        found = gm(*given)
        state = [*owner.state_dict().values()]
        kept = [found, given, state, SEEN, torch.get_rng_state()]
        seen.append([plain(each) for each in kept])
        with torch.no_grad():
            for value in found:
                if rng.random() < 0.5:
                    value.add_(1)
            if rng.random() < 0.3:
                owner.weight.mul_(2)
            if rng.random() < 0.3:
                owner.weight.data = owner.weight + 1
            if rng.random() < 0.3:
                owner.load_state_dict({n: v * 0.5 for n, v in state_of(owner)})
    return seen


def state_of(owner: nn.Module) -> list[tuple[str, torch.Tensor]]:
    """The tensors of a module, by name."""
    return [*owner.state_dict().items()]


def difference(lib: Anything, seed: int) -> tuple[str, bool] | None:
    """What folding changed, and whether there was any; None if not runnable."""
    program = Constants(lib, seed)
    try:
        before = history(
            lib.GraphModule(program.owner, program.graph), program.owner, seed
        )
    except Exception:
        return None
    program = Constants(lib, seed)
    gm = lib.GraphModule(program.owner, program.graph)
    fold = import_module(f"{lib.__name__}.experimental.const_fold")
    try:
        folded = fold.split_const_subgraphs(gm)
        after = history(folded, program.owner, seed)
    except Exception as error:
        return f"{type(error).__name__}: {error} after folding", True
    if before == after:
        return "", folded.const_subgraph_module is not None
    names = ("output", "inputs", "state", "kept by users", "random")
    changed = {
        f"{name} of call {call}"
        for call, (one, other) in enumerate(zip(before, after, strict=True))
        for name, *both in zip(names, one, other, strict=True)
        if both[0] != both[1]
    }
    return ", ".join(sorted(changed)), True


def run(seed: int, cases: int) -> Iterator[Outcome]:
    """Fold the constants of `cases` programs."""
    folded = 0
    for number in range(cases):
        case = seed * 1_000_003 + number
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours = difference(fx, case)
            if ours is not None:
                theirs = difference(torch.fx, case)
                folded += ours[1]
                yield Outcome(
                    f"seed {case}", ours[0], theirs[0] if theirs else ""
                )
    if folded < cases // 20:
        yield Outcome(f"seed {seed}", f"only {folded} of {cases} were folded")


FOLD = "fx/experimental/const_fold.py"

PART = Part(
    "folding",
    "three calls of a module, constants folded or not",
    run,
    share=60,
    long=20_000,
    plants=(
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
            " or self._stamp != self._now()[1]",
            "",
            "a weight that changes is not noticed",
        ),
        Plant(
            FOLD,
            ", part.data_ptr()",
            "",
            "other memory of a weight is not noticed",
        ),
    ),
)
