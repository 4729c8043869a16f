"""Stage 04, module patching: where torch has what a trace must replace.

Functions that `torch.compile` has wrapped ask torch.fx whether a trace is
running, and refuse to be traced.  Up to torch 2.14 they read a flag of the
process, and since then they call a function that reads one of the thread.
A `Place` is a dict and the name in it, or no name if torch lacks it.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from torch import nn

from ..use_def.values import AnyValue
from .names import OLDEST_TORCH, TORCH, find_or

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

MARKED: Final[dict[tuple[int, str], dict[str, AnyValue]]] = find_or(
    "torch.fx._symbolic_trace:_wrapped_fns_to_patch",
    {},
    without="functions marked with torch.fx.wrap are traced through",
)
"""What `torch.fx.wrap` has marked: (_, name) -> the globals it is in."""


def compiled_from(module: nn.Module) -> nn.Module | None:
    """The module that torch.compile was given, if it has made this one."""
    if not type(module).__module__.startswith("torch._dynamo"):
        return None
    found: nn.Module | None = module._modules.get("_orig_mod")
    return found
