"""Extra: what torch's rules for recurrent modules need not ask of sizes.

Torch takes an RNN apart step by step, which would fix its length. But each step
gives the same sizes: one is enough, and its output is repeated. And where a
cell writes, torch asks whether that is dense, which differs for a batch of 1;
all that matters is whether items share memory. Torch's rule for packing gives
the padded sizes, and they are replaced by sizes that depend on values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch

from ..use_def.values import AnyValue
from .names import find, find_or
from .symbolic_sizes import NotedGuards


def recurrent() -> Iterator[tuple[AnyValue, str, Callable[..., AnyValue]]]:
    """Rules that ask less: holders, names, makers of replacements."""
    for rule in filter(None, _LAYERS):
        yield rule.__globals__, rule.__name__, partial(_instead, _repeated)
    if _OVERLAPS is not None:
        yield vars(torch), _OVERLAPS.__name__, partial(_instead, _overlaps)
    pack: AnyValue = torch.ops.aten._pack_padded_sequence.default  # noqa: SLF001
    if pack in _OPERATORS:
        yield _OPERATORS, pack, partial(_instead, _packed)


def _instead(other: AnyValue, rule: AnyValue) -> Callable[..., AnyValue]:
    """A rule, but another one for tensors of a trace on an example."""

    def replacement(*args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        mode = getattr(args[0], "fake_mode", args[0])
        if isinstance(getattr(mode, "shape_env", None), NotedGuards):
            return other(rule, *args, **kwargs)
        return rule(*args, **kwargs)

    return replacement


def _repeated(rule: AnyValue, *args: AnyValue, **kwargs: AnyValue) -> AnyValue:
    """What a layer gives, computed for one step."""
    dense, steps = {"memory_format": torch.contiguous_format}, args[0]
    first = steps.narrow(0, 0, 1).clone(**dense)
    one, hidden = rule(first, *args[1:], **kwargs)
    return one.expand(steps.shape[0], *one.shape[1:]).clone(**dense), hidden


def _overlaps(_: AnyValue, tensor: torch.Tensor) -> int:
    """1 if items of a tensor share memory."""
    sides = zip(tensor.stride(), tensor.shape, strict=True)
    return int(any(step == 0 and size > 1 for step, size in sides))


def _packed(_: AnyValue, mode: AnyValue, *args: AnyValue) -> AnyValue:
    """The items of all sequences, and how many each step has."""
    x, lengths = args[1:3]
    total, steps = (mode.shape_env.create_unbacked_symint() for _ in range(2))
    for size in (total, steps):
        _constrain(size, min=1)
    return x.new_empty((total, *x.shape[2:])), lengths.new_empty(steps)


_find = partial(find_or, default=None, without="fx.trace fixes sizes in an RNN")
_LAYERS = [
    _find(f"torch._decomp.decompositions:{name}")
    for name in ("one_layer_rnn", "one_layer_lstm", "mkldnn_one_layer_lstm")
]
_OVERLAPS = _find("torch:_debug_has_internal_overlap")
_constrain = find(
    "torch.fx.experimental.symbolic_shapes:_constrain_range_for_size",
    needed_for="fx.trace",
)
_OPERATORS = find_or(
    "torch._subclasses.fake_impls:op_implementations_dict",
    {},
    without="fx.trace has wrong sizes for a packed sequence",
)
