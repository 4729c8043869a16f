"""Extra: what of torch is replaced or asked while a trace is watched.

If a torch lacks one of these, a trace records the same and warns of less, and
`fx.trace` refuses transforms of functions such as vmap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import torch
import torch.backends.cuda
import torch.backends.mha

from ..use_def.values import AnyValue
from .names import OLDEST_TORCH, TORCH, find, find_or

Place: TypeAlias = tuple[dict[str, AnyValue], list[str]]
"""The globals of a module, and which of them to replace."""


def place(
    module: str, name: str, *, without: str, since: str = OLDEST_TORCH
) -> Place:
    """The globals of a module and a name in them, if torch has it."""
    path = f"{module}:{name}"
    found = find_or(path, None, without=without, since=since)
    names = [] if found is None else [name]
    return find_or(f"{module}:__dict__", {}, without=without), names


FLAG: Final = place(
    "torch.fx._symbolic_trace",
    "_is_fx_tracing_flag" if TORCH < "2.14" else "_get_is_fx_tracing",
    without="functions wrapped by torch.compile run on proxies",
)
"""What they ask: the flag, or the function that reads it."""

SET_FLAG: Final = place(
    "torch.fx._symbolic_trace",
    "_set_is_fx_tracing",
    since="2.15",
    without="torch writes the flag itself",
)
"""With what torch says, since 2.15, that no trace runs."""

GRADIENTS: Final = place(
    "torch._C",
    "_set_grad_enabled",
    without="a trace does not warn of torch.no_grad() in forward",
)
"""What torch's Python code switches gradients with."""

MODES: Final[tuple[AnyValue, ...]] = (
    torch.backends.mha,
    torch.backends.cuda,
    find("torch._C", needed_for="questions for modes of torch in fx.trace"),
    torch,
)
"""Modules with functions that ask for a mode; the last knows a name best."""

DeviceContext: Final[type] = find(
    "torch.utils._device:DeviceContext",
    needed_for="a warning of `with torch.device(…)` in forward",
)
"""What `with torch.device("meta"):` makes; torch calls nothing else of it."""

_WITHOUT: Final = "fx.trace refuses torch.vmap"

VMAP: Final[tuple[dict[str, AnyValue], list[str]]] = (
    find_or("torch._functorch.apis:__dict__", {}, without=_WITHOUT),
    ["vmap_impl"],
)
"""The globals, and the name in them, that `torch.vmap(f)(x)` calls.

The function that `torch.vmap(f)` returns has no mark by which to know it, but
it looks up this name when it is called, and there it can be replaced.
"""

is_wrapped: Final[Callable[[torch.Tensor], bool]] = find_or(
    "torch._C._functorch:is_functorch_wrapped_tensor",
    lambda tensor: False,
    without=_WITHOUT,
)
"""Whether a tensor is what the function in a transform gets."""

broadcast_to_and_flatten: Final[Callable[..., list[AnyValue] | None]] = find(
    "torch.utils._pytree:_broadcast_to_and_flatten",
    needed_for="torch.vmap in fx.trace",
)
"""The leaves of a tree that says less than another, each as often as that has
leaves there; None if they do not fit."""


def autocast_arguments(block: torch.autocast) -> tuple[AnyValue, ...]:
    """What `enter_autocast` takes to do what a block does."""
    names = "device", "fast_dtype", "_enabled", "_cache_enabled"
    return tuple(getattr(block, name) for name in names)
