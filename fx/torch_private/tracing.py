"""Stage 04, module patching: what torch has marked or compiled."""

from __future__ import annotations

from typing import Final

from torch import nn

from ..use_def.values import AnyValue
from .names import find_or

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
