"""Programs of ATen operators, before and after they are done in place.

What the caller can see must be the same: the results, in what layout they are
and which of them share memory with each other and with the inputs, and what
the inputs are afterwards.  torch.fx does the same programs in place.
"""

from __future__ import annotations

import itertools
import logging
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import torch
from torch.fx.passes.reinplace import reinplace as torch_reinplace

import fx
from fx.node import Node
from fx.passes.reinplace import reinplace
from tests.library.random_aten import random_inputs, random_program
from tests.reliability.part import Outcome, Part, Plant

Tensor: TypeAlias = torch.Tensor
Lib: TypeAlias = Any
Module: TypeAlias = Any
Seen: TypeAlias = tuple[object, ...]


def search(seed: int, cases: int) -> Iterator[Outcome]:
    """Random programs, and whether something changed."""
    rng = random.Random(seed)
    logging.getLogger("torch._subclasses.fake_tensor").disabled = True
    for _ in range(cases):
        case = rng.randrange(10**9)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield Outcome(
                f"seed {case}",
                difference(case, random_program(case), reinplace),
                difference(case, for_torch(case), torch_reinplace),
            )


def for_torch(seed: int) -> torch.fx.GraphModule:
    """The program of a seed as a graph of torch.fx."""
    graph = torch.fx.Graph()
    known: dict[Node, torch.fx.Node] = {}
    for node in random_program(seed).graph.nodes:
        target: Any = node.target
        given: Any = fx.map_arg((node.args, dict(node.kwargs)), known.get)
        known[node] = graph.create_node(node.op, target, *given)
    return torch.fx.GraphModule(torch.nn.Module(), graph)


def difference(seed: int, gm: Module, in_place: Callable[..., Module]) -> str:
    """What `in_place` has changed that a caller sees; "" if nothing."""
    code, before = gm.code, seen(gm, seed)
    try:
        in_place(gm, *random_inputs(seed))
    except Exception as refused:  # a caller sees it, and keeps the program
        if gm.code != code:
            return f"{refused!r} after half of the work:\n{gm.code}"
        return ""
    gm.graph.lint()
    both = f"\n{code}\n{gm.code}"
    try:
        after = seen(gm, seed)
    except Exception as raised:  # an operator may raise anything
        return f"{raised!r}{both}"
    for name, one, other in zip(SEEN, before, after, strict=True):
        if one != other:
            return f"{name} were {one} and are {other}{both}"
    return ""


SEEN = (
    "the results",
    "the inputs",
    "the layouts",
    "the shared memories",
    "the gradients",
)


def seen(gm: Module, seed: int) -> Seen:
    """What a caller sees of one call: `SEEN`."""
    inputs = random_inputs(seed)
    results = [*gm(*inputs)]
    around = [memories(one) for one in (*results, *inputs)]
    return (
        [text(one) for one in results],
        [text(one) for one in inputs],
        [layout(one) for one in results],
        [
            pair
            for pair in itertools.combinations(range(len(around)), 2)
            if not around[pair[0]].isdisjoint(around[pair[1]])
        ],
        gradients(results, inputs),
    )


def gradients(results: list[Tensor], inputs: list[Tensor]) -> list[str]:
    """Those of the inputs for the sum of the results, or what was raised."""
    parts = [one.to_dense().sum() for one in results if one.requires_grad]
    leaves = [one for one in inputs if one.requires_grad and one.is_leaf]
    if not parts or not leaves:
        return []
    try:
        found: Any = torch.autograd.grad(
            torch.stack(parts).sum(), leaves, allow_unused=True
        )
    except RuntimeError as error:
        return [str(error)[:60]]
    # A zero may come without memory.
    return [
        "" if one is None else text(torch.zeros(one.shape) + one)
        for one in found
    ]


def text(tensor: Tensor) -> str:
    """A tensor's dtype, size and elements."""
    return f"{tensor.dtype} {tensor.shape} {tensor.to_dense().tolist()}"


def layout(tensor: Tensor) -> Seen:
    """How a tensor lies in memory, apart from where.

    A stride says nothing if there is only one step, or no element.
    """
    if tensor.layout is not torch.strided:
        return (tensor.layout,)
    steps = zip(tensor.stride(), tensor.shape, strict=True)
    strides = [step for step, size in steps if size > 1 and tensor.numel()]
    return tensor.layout, strides, tensor.is_conj(), tensor.is_neg()


def memories(tensor: Tensor) -> set[int]:
    """The storages in which a tensor of any layout has its elements."""
    if tensor.layout is torch.sparse_coo:
        parts = [tensor._indices(), tensor._values()]
    elif tensor.layout is torch.strided:
        parts = [tensor]
    else:
        parts = [tensor.values()]
    storages = [part.untyped_storage() for part in parts]
    return {one.data_ptr() for one in storages if one.nbytes()}


REINPLACE = "fx/passes/reinplace.py"
SIMULATION = "fx/reinplacing/simulation.py"
RECOMPUTING = "fx/reinplacing/strides.py"

PART = Part(
    name="reinplacing",
    compares="results, inputs, strides and shared memory, before and after",
    run=search,
    share=120,
    long=20_000,
    plants=(
        Plant(
            REINPLACE,
            "if sim.is_returned(call.node) and sim.is_returned(scatter):",
            "if False:",
            "the result and the scatter are returned as one memory",
        ),
        Plant(
            SIMULATION,
            "if not self.storages.hidden.isdisjoint(around):",
            "if False:",
            "a sparse tensor is in no alias set",
        ),
        Plant(
            SIMULATION,
            "if self.hides_input:",
            "if False:",
            "a sparse input shares memory with no other input",
        ),
        Plant(
            RECOMPUTING,
            "                if old != new:\n",
            "                if False:\n",
            "what is returned may have other strides",
        ),
        Plant(
            REINPLACE,
            "if geometry(base).overlaps_itself():",
            "if False:",
            "rule 1a: an expanded tensor is written",
        ),
        Plant(
            REINPLACE,
            "if geometry(sim.values[into]).overlaps_itself():",
            "if False:",
            "a scatter into an expanded tensor is dropped",
        ),
        Plant(
            SIMULATION,
            "elif any(t.requires_grad for t in",
            "elif False and any(t.requires_grad for t in",
            "autograd has saved what is written",
        ),
        Plant(
            REINPLACE,
            "if memory.owner is None:",
            "if memory.owner is None or memory.owner:",
            "rule 1b: an input is written",
        ),
        Plant(
            REINPLACE,
            "    if users:\n        use",
            "    if False:\n        use",
            "rule 2: the old value is needed later",
        ),
        Plant(
            RECOMPUTING,
            'raise NotInPlace(\n                "4", f"{node} depends on the '
            'strides of the result"\n            )',
            "pass",
            "rule 4: a later node depends on the strides",
        ),
    ),
)
