"""Whether operators and modules of torch do what `classify` says of them.

Each case is an operator of torch's own test suite (OpInfo) or a class of
modules (ModuleInfo).  It is called on torch's sample inputs, as a function, a
method, in place and with `out=`, and watched: which tensors have other values
afterwards, whether random numbers were drawn, and in which storages the result
is found.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import random
import sys
import types
import unittest
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import torch
import torch.fx
from torch import nn
from torch.nn import functional as F
from torch.nn.parameter import is_lazy
from torch.utils import _pytree as pytree

from fx.extra.effects.effects import (
    Effect,
    classify,
    is_new,
    is_tensor,
    is_torchs_module,
)
from fx.graph import Graph
from fx.node import Node
from tests.reliability.part import Outcome, Part, Plant

Anything: TypeAlias = Any


# -- what a call did ---------------------------------------------------------


@dataclass
class Seen:
    """What was observed of one call."""

    written: set[int] = field(default_factory=set)
    drew: bool = False
    shares: bool = False
    shares_state: bool = False
    one_tensor: bool = False


def storages(value: Anything) -> set[int]:
    """The addresses of the memory that a value is in."""
    found = set()
    for tensor in pytree.tree_leaves(value):
        if isinstance(tensor, torch.Tensor):
            # Sparse tensors have no storage of their own.
            with contextlib.suppress(NotImplementedError, RuntimeError):
                found.add(tensor.untyped_storage().data_ptr())
    return found - {0}


def bits(tensor: torch.Tensor) -> Anything:
    """A copy to compare with, in which nan equals nan."""
    copy = tensor.detach().clone()
    if copy.layout != torch.strided:
        copy = copy.to_dense()
    return copy, torch.isnan(copy) if copy.is_floating_point() else None


def same(tensor: torch.Tensor, before: Anything) -> bool:
    """Whether a tensor is as it was."""
    now, nan = bits(tensor)
    was, was_nan = before
    if now.shape != was.shape or now.dtype != was.dtype:
        return False
    equal = now == was
    if nan is not None:
        equal |= nan & was_nan
    return bool(equal.all())


def watch(
    call: Callable[[], Anything],
    inputs: Sequence[torch.Tensor],
    state: Sequence[torch.Tensor] = (),
) -> Seen | None:
    """Run a call and say what it did; None if torch refuses it."""
    state = [tensor for tensor in state if not is_lazy(tensor)]
    before = [bits(tensor) for tensor in (*inputs, *state)]
    rng = torch.get_rng_state()
    given, own = storages(inputs), storages(state)
    try:
        result = call()
    except Exception:
        return None
    seen = Seen(drew=not torch.equal(rng, torch.get_rng_state()))
    found = storages(result)
    seen.shares, seen.shares_state = bool(found & given), bool(found & own)
    seen.one_tensor = isinstance(result, torch.Tensor)
    for place, tensor in enumerate((*inputs, *state)):
        if not same(tensor, before[place]):
            seen.written.add(place)
    return seen


# -- what is claimed ---------------------------------------------------------


class Claims(NamedTuple):
    """What is said of a node before it runs."""

    effect: Effect
    new: bool
    tensor: bool


def claims_about(node: Node) -> Claims:
    """Ask before the call: a lazy module is another one afterwards."""
    return Claims(classify(node), is_new(node, {}), is_tensor(node, {}))


def wrong_claims(claims: Claims, seen: Seen, target: int | None) -> str:
    """What is claimed of a node and was not so; "" if nothing.

    `target` is the place of the argument that may be overwritten.
    """
    effect = claims.effect
    wrong = []
    if effect.kind == "pure" and (seen.written or seen.drew):
        wrong.append("called pure, and it writes or draws")
    if effect.target is not None:
        if target is None or seen.written - {target} or seen.drew:
            wrong.append("does more than overwrite its target")
    elif claims.new and seen.shares and effect.kind == "pure":
        wrong.append("called new memory, and it is an input's")
    if effect.kind == "pure" and seen.shares_state:
        wrong.append("its value is in the memory of its state")
    if claims.tensor and not seen.one_tensor:
        wrong.append("called a tensor, and it is not one")
    return "; ".join(wrong)


def record(
    graph: Anything, op: str, target: Anything, args: Anything, kwargs: Anything
) -> tuple[Anything, list[torch.Tensor]]:
    """Add a call to a graph, with a placeholder for each tensor."""
    tensors: list[torch.Tensor] = []

    def placeholder(value: Anything) -> Anything:
        if not isinstance(value, torch.Tensor):
            return value
        for place, known in enumerate(tensors):
            if known is value:
                return made[place]
        tensors.append(value)
        made.append(graph.placeholder(f"x{len(made)}", torch.Tensor))
        return made[-1]

    made: list[Anything] = []
    args, kwargs = pytree.tree_map(placeholder, (tuple(args), dict(kwargs)))
    return graph.create_node(op, target, args, kwargs), tensors


def judged(
    op: str, target: Anything, args: Anything, kwargs: Anything, owner: Anything
) -> tuple[str, str] | None:
    """What is wrong here, and in torch.fx, about one call."""
    torch.manual_seed(0)
    theirs: Anything = torch.fx.Graph(owner)
    try:
        node, tensors = record(Graph(owner), op, target, args, kwargs)
        other, _ = record(theirs, op, target, args, kwargs)
        impure = other.is_impure()
        claims = claims_about(node)
    except Exception:
        return None
    state: list[torch.Tensor] = []
    function = target
    if op == "call_method":
        function = getattr(torch.Tensor, target)
    elif op == "call_module":
        function = owner.child
        state = [*owner.child.parameters(), *owner.child.buffers()]
    if not callable(function):
        return None
    call = functools.partial(function, *args, **kwargs)
    seen = watch(call, tensors, state)
    if seen is None:
        return None
    if op == "call_module" and not is_torchs_module(node):
        seen.shares_state = False  # nothing is claimed of it
    first = 0 if tensors and args and args[0] is tensors[0] else None
    misses = not impure and (seen.written or seen.drew)
    return (
        wrong_claims(claims, seen, first),
        "has an effect, and is removed" if misses else "",
    )


# -- torch's samples ---------------------------------------------------------


def from_torchs_tests(module: str, name: str) -> Anything:
    """A table of torch's tests, which import a package that we do not need."""
    with contextlib.suppress(ImportError):
        importlib.import_module("expecttest")
    stub: Anything = types.ModuleType("expecttest")
    stub.TestCase = unittest.TestCase
    sys.modules.setdefault("expecttest", stub)
    return getattr(importlib.import_module(module), name)


Case: TypeAlias = tuple[str, Callable[[], Iterator[Anything]]]
"""A name, and the calls to judge: the arguments of `judged`."""


def operators() -> list[Case]:
    """The operators of OpInfo."""
    table = from_torchs_tests(
        "torch.testing._internal.common_methods_invocations", "op_db"
    )
    return [(info.name, functools.partial(calls_of, info)) for info in table]


def calls_of(info: Anything) -> Iterator[Anything]:
    """Some calls of an operator in all the ways in which it can be called."""
    name = info.name
    target: Anything = torch
    for part in name.split("."):
        target = getattr(target, part, None)
    packet = getattr(torch.ops.aten, name.rpartition(".")[2], None)
    functions = [info.op, target, packet, F.__dict__.get(f"{name[14:]}_")]
    base = name.removeprefix("nn.functional.")
    dtypes = [d for d in DTYPES if d in info.supported_dtypes("cpu")]
    for dtype in dtypes[:2]:
        # Not `sample_inputs`, which inspects the stack each time.
        samples = info.sample_inputs_func(info, "cpu", dtype, False)
        for sample in islice(samples, 3):
            args = (sample.input, *sample.args)
            for function in filter(callable, functions):
                yield "call_function", function, copied(args), sample.kwargs
            for method in (base, f"{base}_"):
                if hasattr(torch.Tensor, method):
                    yield "call_method", method, copied(args), sample.kwargs
            if info.supports_out:
                kwargs = {**sample.kwargs, "out": torch.empty(0, dtype=dtype)}
                yield "call_function", info.op, copied(args), kwargs
            for flag in ("inplace", "training"):
                kwargs = {**sample.kwargs, flag: True}
                yield "call_function", target, copied(args), kwargs


DTYPES = (torch.float32, torch.int64, torch.bool, torch.complex64)


def copied(value: Anything) -> Anything:
    """The arguments of a call with tensors of their own."""

    def copy(part: Anything) -> Anything:
        return part.clone() if isinstance(part, torch.Tensor) else part

    return pytree.tree_map(copy, value)


def modules() -> list[Case]:
    """The classes of ModuleInfo, with and without `inplace=True`."""
    table = from_torchs_tests(
        "torch.testing._internal.common_modules", "module_db"
    )
    return [
        (info.module_cls.__name__, functools.partial(calls_of_module, info))
        for info in table
    ]


def calls_of_module(info: Anything) -> Iterator[Anything]:
    """Calls of a module in training and not, in place and not."""
    for training in (True, False):
        samples = info.module_inputs_func(
            info, "cpu", torch.float32, requires_grad=False, training=training
        )
        for sample in islice(samples, 4):
            made, call = sample.constructor_input, sample.forward_input
            for more in ({}, {"inplace": True}):
                try:
                    child = info.module_cls(*made.args, **made.kwargs, **more)
                except TypeError:
                    continue
                owner = nn.Module()
                owner.child = child.train(training)
                if call is not None:
                    args, kwargs = copied(call.args), copied(call.kwargs)
                    yield "call_module", "child", args, kwargs, owner


ODD: Sequence[Callable[[torch.Tensor], tuple[Anything, ...]]] = (
    lambda x: (torch.roll, x, 0),
    lambda x: (torch.flip, x, ()),
    lambda x: (torch.cat, [x]),
    lambda x: (torch.stack, [x]),
    lambda x: (torch.sum, x, ()),
    lambda x: (torch.amax, x, ()),
    lambda x: (torch.all, x, ()),
    lambda x: (torch.round, x.long()),
    lambda x: (torch.ceil, x.long()),
    lambda x: (torch.abs, x.bool()),
    lambda x: (torch.angle, x),
    lambda x: (torch.sgn, x),
    lambda x: (torch.clamp, x, None, x),
    lambda x: (torch.nan_to_num, x.long()),
    lambda x: (torch.where, x > 0, x, x),
    lambda x: (torch.matmul, x, torch.eye(4)),
    lambda x: (torch.softmax, x, 0, x.dtype),
    lambda x: (torch.triu, x, -9),
    lambda x: (torch.index_select, x, 0, torch.arange(2)),
    lambda x: (F.max_pool2d, x[None], 1),
    lambda x: (F.avg_pool2d, x[None], 1),
    lambda x: (F.adaptive_avg_pool2d, x[None], (2, 4)),
    lambda x: (F.adaptive_max_pool2d, x[None], (2, 4)),
    lambda x: (F.relu, x[:0]),
    lambda x: (F.layer_norm, x, (4,)),
    lambda x: (F.batch_norm, x, torch.zeros(4), torch.ones(4)),
    # What must not be on the list: their schemas declare no alias.
    lambda x: (torch.ops.aten.type_as, x, x),
    lambda x: (torch.Tensor.type_as, x, x),
    lambda x: (torch.atleast_1d, x),
    lambda x: (torch.einsum, "ij->ji", x),
    lambda x: (torch.meshgrid, x[0], x[1]),
    lambda x: (torch.cartesian_prod, x[0]),
    lambda x: (torch.broadcast_tensors, x, x),
    lambda x: (torch.dropout, x, 0.5, False),
    lambda x: (F.dropout, x, 0.5, False),
    lambda x: (torch.Tensor.to, x, x.dtype),
    lambda x: (torch.Tensor.contiguous, x),
    lambda x: (torch.conj_physical, x),
    lambda x: (torch.Tensor.sum_to_size, x, 2, 4),
)
"""Calls that have nothing to compute, so that an operator might save itself
the copy."""


def odd_calls() -> Iterator[Anything]:
    """The calls of `ODD`."""
    for call in ODD:
        function, *args = call(torch.randn(2, 4))
        yield "call_function", function, tuple(args), {}


# -- the part ----------------------------------------------------------------


def run(seed: int, cases: int) -> Iterator[Outcome]:
    """Judge `cases` operators and classes of modules, and all odd calls."""
    warnings.simplefilter("ignore")
    chosen: list[Case] = [*operators(), *modules()]
    random.Random(seed).shuffle(chosen)
    for name, calls in [
        ("calls that copy nothing", odd_calls),
        *chosen[:cases],
    ]:
        ours, theirs = set(), set()
        with contextlib.suppress(NotImplementedError):
            for op, target, args, kwargs, *owner in calls():
                found = judged(op, target, args, kwargs, *(owner or [None]))
                if found is not None:
                    text = getattr(target, "__name__", target)
                    ours |= {f"{op} {text}: {found[0]}"} if found[0] else set()
                    theirs |= {f"{op} {text} {found[1]}"} if found[1] else set()
        ours_text, theirs_text = map("; ".join, map(sorted, (ours, theirs)))
        yield Outcome(name, ours_text, theirs_text)


TABLES = "fx/extra/effects/effect_tables.py"

PART = Part(
    "effects",
    "what operators and module classes of torch do, with what is said",
    run,
    share=80,
    long=10_000,
    plants=(
        Plant(
            TABLES,
            '"abs acos acosh add ',
            '"type_as atleast_1d abs acos acosh add ',
            "operators that return their input are taken for new memory",
        ),
        Plant(
            "fx/extra/effects/function_effects.py",
            "    if any(facts.draws for facts in functional):",
            "    if False:",
            "operators that draw random numbers are taken for pure",
        ),
        Plant(
            TABLES,
            "lambda m: m.training and m.track_running_stats,",
            "lambda m: False,",
            "a batch norm in training is taken for pure",
        ),
        Plant(
            "fx/extra/effects/function_effects.py",
            "        if not known or facts.draws or len(facts.writes) != 1:",
            "        if len(facts.writes) != 1:",
            "a write is all that `bernoulli_` is said to do",
        ),
        Plant(
            "fx/extra/effects/modules.py",
            '        and not getattr(module, "return_indices", False)\n',
            "",
            "the two results of a pool are taken for one tensor",
        ),
    ),
)
