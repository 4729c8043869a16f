"""Stage 04, module patching: what torch.fx notes about traces and leaves.

Functions that `torch.compile` has wrapped ask torch.fx whether a trace is
running, and refuse to be traced.  Up to torch 2.14 they read a flag of the
process, and since then they call a function that reads one of the thread.
"""

from __future__ import annotations

from typing import Final

from ..usedef.values import Value
from .names import find_or

_NAMES: Final[dict[str, Value]] = find_or(
    "torch.fx._symbolic_trace:__dict__",
    {},
    since="1.8",
    without="functions wrapped by torch.compile run on proxies",
)

FLAG: Final = (
    _NAMES,
    [
        name
        for name in ("_is_fx_tracing_flag", "_get_is_fx_tracing")
        if name in _NAMES
    ],
)
"""The globals that have the flag or the function, and its name there."""

MARKED: Final[dict[tuple[int, str], dict[str, Value]]] = find_or(
    "torch.fx._symbolic_trace:_wrapped_fns_to_patch",
    {},
    since="1.8",
    without="functions marked with torch.fx.wrap are traced through",
)
"""What `torch.fx.wrap` has marked: (_, name) -> the globals it is in."""
