"""Whether what nodes note of their values is true after a rewrite.

Each case is a random graph of calls that change shapes, dtypes and strides, and
that may work in place, with the notes of ShapeProp, FakeTensorProp or both.
One kind of call in it is replaced by other calls, most of which return
something of another shape or dtype.  Afterwards the graph runs, node by node,
and each value is compared with what its node notes; if the notes were to be
recomputed, each node must have some.  The rewrite is by `replace_pattern`, or
by a rule.  Of the notes of torch.fx the same is asked.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any, Final, TypeAlias

import torch
import torch.fx
from torch import nn

import fx
from fx.rewriting.rules import Rule, rewrite_until_stable
from fx.traceback import OF_VALUE
from tests.reliability.part import Outcome, Part, Plant

Anything: TypeAlias = Any

ONE: Final[dict[str, Callable[[Anything], Anything]]] = {
    "relu": lambda x: torch.relu(x),
    "sigmoid": lambda x: torch.sigmoid(x),
    "t": lambda x: torch.t(x),
    "double": lambda x: x.double(),
    "half": lambda x: x.bfloat16(),
    "twice": lambda x: torch.cat([x, x]),
    "copy": lambda x: x.t().contiguous(),
    "row": lambda x: torch.narrow(x, 0, 0, 1),
    "most": lambda x: torch.max(x, 0, keepdim=True)[0],
    "places": lambda x: torch.max(x, 1, keepdim=True)[1].float(),
    "detach": lambda x: x.detach(),
    "in place": lambda x: torch.neg(x).add_(1),
    "reshaped": lambda x: torch.neg(x).t_(),
    "size": lambda x: x * x.shape[0],
    "layer": lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:]),
    "itself": lambda x: x,
    "written": lambda x: x.mul_(2),
    "turned": lambda x: x.t_(),
}
"""Calls, and what may come in their place."""

SOUGHT: Final = ("relu", "sigmoid", "double", "detach", "written", "turned")
"""The calls that are replaced; `turned` and `written` seldom."""


def forward_of(seed: int) -> Callable[[Anything], Anything]:
    """A random function of one tensor."""

    def forward(x: Anything) -> Anything:
        rng = random.Random(seed)
        values = [x + 1]
        sought = rng.choice(SOUGHT)
        for _ in range(rng.randint(2, 6)):
            name = sought if rng.random() < 0.4 else rng.choice([*ONE])
            values.append(ONE[name](rng.choice(values[-2:])))
            if rng.random() < 0.2:
                values.append(values[-1] + values[-1])
        values.append(ONE[sought](values[-1]) * 2)
        return (*values[-2:], {"first": values[0].sum()})

    return forward


class Root(nn.Module):
    """A module, so that results may need gradients."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 3)
        vars(self)["calls"] = forward_of(seed)

    def forward(self, x: Anything) -> Anything:
        return vars(self)["calls"](self.inner(x))


def given() -> torch.Tensor:
    """The input."""
    return torch.ones(2, 3)


def noted(lib: Anything, seed: int) -> Anything:
    """The module of a case, with notes."""
    rng = random.Random(seed)
    root = Root(seed) if rng.random() < 0.4 else forward_of(seed)
    gm = lib.symbolic_trace(root)
    kinds = rng.choice(("shape", "fake", "both"))
    passes = f"{lib.__name__}.passes"
    if kinds != "fake":
        shapes = import_module(f"{passes}.shape_prop")
        shapes.ShapeProp(gm).propagate(given())
    if kinds != "shape":
        fakes = import_module(f"{passes}.fake_tensor_prop")
        mode = torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True)
        fakes.FakeTensorProp(gm, mode).propagate(given())
    return gm


def like(value: Anything, *, grad: bool) -> Anything:
    """What a note on a value should say; of gradients, if it is to say that."""
    same = partial(like, grad=grad)
    is_metadata = type(value).__name__ == "TensorMetadata"
    if is_metadata or isinstance(value, torch.Tensor):
        strides = value.stride if is_metadata else value.stride()
        needs = grad and value.requires_grad
        return tuple(value.shape), value.dtype, steps(value, strides), needs
    if isinstance(value, (tuple, list)):
        return [same(item) for item in value]
    if isinstance(value, dict):
        return {key: same(item) for key, item in value.items()}
    return value


def steps(tensor: Anything, strides: tuple[int, ...]) -> list[int]:
    """The strides that matter: a fake tensor may have others beside."""
    sizes = zip(tensor.shape, strides, strict=True)
    return [stride for size, stride in sizes if size != 1]


def untrue(lib: Anything, gm: Anything) -> Iterator[str]:
    """The notes that are not true of what the nodes compute."""
    wrong: list[str] = []

    class Compares(lib.Interpreter):  # type: ignore[misc]
        """Compares each value with the notes on it."""

        def run_node(self, n: Anything) -> Anything:
            value = super().run_node(n)
            for key in ("val", "tensor_meta"):
                if n.meta.get(key) is not None:
                    shown = partial(like, grad=key == "tensor_meta")
                    says, is_ = shown(n.meta[key]), shown(value)
                    if says != is_:
                        wrong.append(f"{n}: {key} says {says}, is {is_}")
            return value

    Compares(gm).run(given())
    yield from wrong


def replacement(rng: random.Random) -> Callable[[Anything], Anything]:
    """One call, or two in a row."""
    first, second = ONE[rng.choice([*ONE])], ONE[rng.choice([*ONE])]
    return first if rng.random() < 0.7 else lambda x: second(first(x))


def rewritten(lib: Anything, gm: Anything, seed: int) -> dict[str, bool]:
    """Rewrite a module, with random options, which are returned."""
    sought = ONE[random.Random(seed).choice(SOUGHT)]
    rng = random.Random(seed + 1)
    new = replacement(rng)
    options: dict[str, bool] = rng.choice(OPTIONS)
    if lib is fx and rng.random() < 0.2:
        rule = Rule(sought, new)
        rule.options.update(options)  # type: ignore[typeddict-item]
        rewrite_until_stable(gm, [rule], 20)
        return options
    options = options if lib is fx else {}
    module = import_module(f"{lib.__name__}.subgraph_rewriter")
    module.replace_pattern(gm, sought, new, **options)
    return options


OPTIONS: Final[tuple[dict[str, bool], ...]] = (
    {},
    {"carry_meta": True},
    {"recompute_meta": True},
    {"recompute_meta": True, "carry_meta": True},
)


def difference(lib: Anything, seed: int) -> str:
    """What is untrue after a rewrite; "" if nothing."""
    gm = noted(lib, seed)
    if any(untrue(lib, gm)):
        return ""  # torch has no better fake tensor
    code = gm.code
    lacking = {node for node in gm.graph.nodes if not OF_VALUE & {*node.meta}}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            options = rewritten(lib, gm, seed)
            wrong = [*untrue(lib, gm)]
        except (RuntimeError, IndexError, ValueError):
            return ""  # the rule does not end, or the new program cannot run
    is_known = not any("recompute_meta" in str(one.message) for one in said)
    if "recompute_meta" in options and is_known:
        wrong += [
            f"{node} notes nothing"
            for node in gm.graph.nodes
            if node not in lacking and not OF_VALUE & {*node.meta}
        ]
    return f"{wrong}\n{code}\n{gm.code}\n{options}" if wrong else ""


def run(seed: int, cases: int) -> Iterator[Outcome]:
    """Rewrite `cases` programs."""
    rng = random.Random(seed)
    for _ in range(cases):
        case = rng.randrange(10**9)
        theirs = difference(torch.fx, case)
        yield Outcome(f"seed {case}", difference(fx, case), theirs)


DROPPED = "fx/rewriting/replacing.py"
NOTES = "fx/extra/value_notes.py"

PART = Part(
    "notes",
    "what nodes note of their values, and what they compute after a rewrite",
    run,
    share=60,
    long=50_000,
    plants=(
        Plant(
            DROPPED,
            "or not changed.keys().isdisjoint(has)",
            "",
            "the notes behind a new node stay",
        ),
        Plant(
            DROPPED,
            "any(map(_reshapes, {n.target for n in (*olds, *nodes)}))",
            "False",
            "a tensor that is reshaped in place has its old notes",
        ),
        Plant(
            DROPPED,
            '"[]" != described(before) == described(after)',
            "keys != []",
            "notes that differ are taken for the same",
        ),
        Plant(
            NOTES,
            "or _needs_grad(node, noted)",
            "",
            "what needs gradients is taken for what does not",
        ),
    ),
)
