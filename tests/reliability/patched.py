"""What a trace of either library patches, read and put back.

torch.fx leaves patches behind when a trace is interrupted, or overlaps with
another one.  A search that does this to it undoes them with `put_back`, or
what runs later in the process calls functions that are still replaced.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import nn
from torch.fx import _symbolic_trace as torch_tracing

AnyValue: TypeAlias = Any
"""A function or what replaces it."""

_OF_TORCH = ("_is_fx_tracing_flag", "_get_is_fx_tracing", "CURRENT_PATCHER")
"""Whether a trace of torch.fx runs, by the names of all versions, and its
patches, which Dynamo undoes while it compiles and then does again."""


class Patched(NamedTuple):
    """What stands in the places that a trace patches."""

    call: AnyValue
    getattr_: AnyValue
    of_math: dict[str, AnyValue]
    of_torch: dict[str, AnyValue]


def patched() -> Patched:
    """What stands there now."""
    return Patched(
        vars(nn.Module)["__call__"],
        vars(nn.Module)["__getattr__"],
        dict(vars(math)),
        {
            name: getattr(torch_tracing, name)
            for name in _OF_TORCH
            if hasattr(torch_tracing, name)
        },
    )


def marked() -> list[tuple[dict[str, AnyValue], str, AnyValue]]:
    """The functions that `torch.fx.wrap` has marked, and where they stand.

    A trace of torch.fx replaces all of them, whatever module they are in.
    """
    known = torch_tracing._wrapped_fns_to_patch
    return [
        (namespace, name, namespace[name])
        for (_, name), namespace in list(known.items())
        if name in namespace
    ]


@contextmanager
def put_back() -> Iterator[None]:
    """A block, or a function, after which all is as it was before."""
    before, functions = patched(), marked()
    try:
        # Interrupted, torch.fx may leave calls of torch without its overrides.
        with torch._C._EnableTorchFunction():
            yield
    finally:
        module: AnyValue = nn.Module
        module.__call__, module.__getattr__ = before.call, before.getattr_
        vars(math).update(before.of_math)
        vars(torch_tracing).update(before.of_torch)
        for namespace, name, function in functions:
            namespace[name] = function
        thread: AnyValue = getattr(torch_tracing, "_is_fx_tracing_tls", None)
        if thread is not None:
            thread.flag = False
