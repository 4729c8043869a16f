"""Extra: what torch's rules for recurrent modules need not ask of sizes.

Torch takes an RNN apart step by step, which would fix its length. But each step
gives the same sizes: one is enough, and its output is repeated. And where a
cell writes, torch asks whether that is dense, which differs for a batch of 1;
all that matters is whether items share memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch

from ..use_def.values import AnyValue
from .names import find_or
from .symbolic_sizes import NotedGuards


def recurrent() -> Iterator[tuple[AnyValue, str, Callable[..., AnyValue]]]:
    """Rules that ask less: holders, names, makers of replacements."""
    for rule in filter(None, _LAYERS):
        yield rule.__globals__, rule.__name__, partial(_instead, _repeated)
    if _OVERLAPS is not None:
        yield vars(torch), _OVERLAPS.__name__, partial(_instead, _overlaps)


def _instead(other: AnyValue, rule: AnyValue) -> Callable[..., AnyValue]:
    """A rule, but another one for tensors of a trace on an example."""

    def replacement(*args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        mode = getattr(args[0], "fake_mode", None)
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


_find = partial(find_or, default=None, without="fx.trace fixes sizes in an RNN")
_LAYERS = [
    _find(f"torch._decomp.decompositions:{name}")
    for name in ("one_layer_rnn", "one_layer_lstm", "mkldnn_one_layer_lstm")
]
_OVERLAPS = _find("torch:_debug_has_internal_overlap")
