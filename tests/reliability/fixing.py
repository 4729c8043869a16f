"""What a trace fixes of a module, and what it leaves on it.

Each case is a network of two modules whose `forward` has random statements:
they read `training`, or keep values in attributes, containers and classes; some
have a hook, and some fail in the end.  What the traced network gives after
`train()` and `eval()` must be what the network gives, or a warning has said
that it is not.  No proxy may remain in anything that the network refers to.
"""

from __future__ import annotations

import copy
import gc
import random
import types
import warnings
from collections.abc import Iterator
from typing import Any, TypeAlias

import torch
import torch.fx

import fx
from tests.reliability.part import Outcome, Part, Plant

Anything: TypeAlias = Any

MODES = (
    "y = F.dropout(y, 0.5, training={m}.training)",
    "y = F.dropout(y, 0.5 if {m}.training else 0.0)",
    "y = F.dropout(y, 0.5, getattr({m}, 'training'))",
    "y = y * 2 if {m}.training else y",
    "y = y * (3 if not {m}.training and 1 else 2)",
    "y = y + {m}.amount()",
    "y = y + {m}.is_on",
    "y = scaled({m}, y)",
    "for one in {m}.modules(): y = y + one.training",
    "y = {m}.drop(y)",
    "y = {m}.norm(y)",
)
"""Statements that do something else in training."""

KEEPS = (
    "{m}.kept = y",
    "{m}.made = (1, [y])",
    "{m}.made = deque([SimpleNamespace(a={1: {y}})])",
    "{m}.buffer = y",
    "{m}.step += 1; y = y + {m}.step",
    "{m}.things[0] = y",
    "{m}.things += [y]",
    "{m}.nested[0]['a'].append(y)",
    "{m}.table.update(a=y, b=y)",
    "{m}.table['c'] = {m}.table.get('c', 0) + 1; y = y + {m}.table['c']",
    "{m}.groups['a'].append(y)",
    "{m}.queue.append(y)",
    "{m}.seen.add(y)",
    "{m}.settings.last = y",
    "{m}.settings.step += 1; y = y + {m}.settings.step",
    "{m}.settings.every.append(y)",
    "type({m}).last = y",
    "type({m}).count += 1; y = y + type({m}).count",
    "vars({m})['kept'] = y",
)
"""Statements that keep something."""

TEXT = """
from collections import defaultdict, deque
from types import SimpleNamespace

import torch
from torch import nn
from torch.nn import functional as F

def scaled(m, y):
    return y * 2 if m.training else y

class Part(nn.Module):
    count, last = 0, None
    def __init__(self):
        super().__init__()
        self.drop, self.norm = nn.Dropout(), nn.BatchNorm1d(4)
        self.register_buffer("buffer", torch.zeros(4))
        self.kept, self.step, self.things = None, 0, [0]
        self.nested, self.table = [{"a": []}], {"c": 0}
        self.groups, self.queue, self.seen = defaultdict(list), deque(), set()
        self.settings = SimpleNamespace(step=0, every=[])
    def amount(self):
        return 1 if self.training else 0
    is_on = property(amount)
    def forward(self, y):
        CHILD
        return y

class Net(Part):
    def __init__(self):
        super().__init__()
        self.child = Part()
    def forward(self, y):
        FIRST
        y = self.child(y)
        LAST
        return y
"""


CALLS: list[int] = []
"""Calls of hooks."""


def network(rng: random.Random, pool: tuple[str, ...]) -> tuple[str, Anything]:
    """A network with random statements: these, and it."""
    chosen = [line.replace("{m}", "self") for line in rng.sample(pool, 3)]
    chosen[1:] = [
        line.replace("self.", rng.choice(("self.", "self.child.")))
        for line in chosen[1:]
    ]
    chosen[2] = rng.choice((chosen[2], "pass", "raise ValueError"))
    text = TEXT
    for place, line in zip(("CHILD", "FIRST", "LAST"), chosen, strict=True):
        text = text.replace(place, line)
    names: dict[str, Anything] = {"__name__": __name__}
    exec(text, names)
    root = names["Net"]()
    if rng.random() < 0.2:
        chosen.append("with a hook")
        root.child.register_forward_hook(lambda *_: CALLS.append(1))
    return "; ".join(chosen), root


def remaining(lib: Anything, root: object) -> str:
    """Where a proxy is among all that an object refers to."""
    known: dict[int, object] = {id(root): root}
    ahead = [(root, type(root).__name__)]
    for value, path in ahead:
        if isinstance(value, lib.Proxy):
            return path
        skipped = getattr(value, "__globals__", None)
        for one in gc.get_referents(value):
            is_other = isinstance(one, type) and one.__module__ != __name__
            skip = isinstance(one, types.ModuleType) or one is skipped
            if not (skip or is_other or id(one) in known):
                known[id(one)] = one
                ahead.append((one, f"{path} > {type(one).__name__}"))
    return ""


def given(module: Anything, training: bool) -> tuple[list[Anything], bool]:
    """What two calls give in a mode, and whether there was a warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module.train(training)
    torch.manual_seed(0)
    x = torch.arange(12.0).view(3, 4)
    CALLS.clear()
    return [*(module(x).tolist() for _ in range(2)), *CALLS], bool(caught)


def wrong(lib: Anything, root: Anything) -> str:
    """What is wrong after a trace of a network."""
    before = copy.deepcopy(root)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            gm = lib.symbolic_trace(root)
        except (ValueError, TypeError):
            gm = None
    place = remaining(lib, root)
    if place:
        return f"a proxy remains in {place}"
    for training in (True, False) if gm and not caught else ():
        want, _ = given(copy.deepcopy(before), training)
        got, warned = given(copy.deepcopy(gm), training)
        if want != got and not warned:
            return f"{'train' if training else 'eval'}() gives something else"
    return ""


def run(seed: int, cases: int) -> Iterator[Outcome]:
    """Judge `cases` networks: half of them read the mode."""
    text = ""
    for number in range(cases):
        training, results = number % 4 > 1, []
        for lib in (fx, torch.fx):
            rng = random.Random(f"{seed} {number}")
            case, root = network(rng, (MODES, KEEPS)[number % 2])
            text = f"{case}; training={training}"
            results.append(wrong(lib, root.train(training)))
        yield Outcome(text, *results)


CHANGES = "fx/extra/watching/changes.py"
FIXED = "fx/extra/watching/fixed.py"

PART = Part(
    "fixing",
    "what a network gives in training and not, traced or not, unless a warning "
    "says so; and which proxies are left on it",
    run,
    share=60,
    long=3_000,
    plants=(
        Plant(CHANGES, "change.undo()", "pass", "proxies stay"),
        Plant(
            CHANGES,
            "yield StateChange(where, value, undo)",
            "pass",
            "a counter is fixed without a word",
        ),
        Plant(
            FIXED,
            "self._note(module)",
            "pass",
            "modes are fixed",
        ),
        Plant(FIXED, "    if hooks:", "    if not path:", "hooks run once"),
        Plant(CHANGES, "set, deque)", "set)", "proxies stay in a deque"),
        Plant(
            CHANGES, "kind is SimpleNamespace or", "False and", "in an object"
        ),
        Plant(CHANGES, "if not is_librarys(cls)", "if False", "or on a class"),
    ),
)
