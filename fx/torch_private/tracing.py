"""Stage 04, module patching: the functions that torch.fx has marked."""

from __future__ import annotations

from typing import Final

from ..use_def.values import AnyValue
from .names import find_or

MARKED: Final[dict[tuple[int, str], dict[str, AnyValue]]] = find_or(
    "torch.fx._symbolic_trace:_wrapped_fns_to_patch",
    {},
    without="functions marked with torch.fx.wrap are traced through",
)
"""What `torch.fx.wrap` has marked: (_, name) -> the globals it is in."""
