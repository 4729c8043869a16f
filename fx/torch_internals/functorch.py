"""Extra: transforms of functions, such as torch.vmap, and their tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch

from ..usedef.values import Value
from .names import find_or

_WITHOUT: Final = "fx.trace refuses torch.vmap"

VMAP: Final[tuple[dict[str, Value], list[str]]] = (
    find_or("torch._functorch.apis:__dict__", {}, without=_WITHOUT),
    ["vmap_impl"],
)
"""The globals, and the name in them, that `torch.vmap(f)(x)` calls."""

is_wrapped: Final[Callable[[torch.Tensor], bool]] = find_or(
    "torch._C._functorch:is_functorch_wrapped_tensor",
    lambda tensor: False,
    without=_WITHOUT,
)
"""Whether a tensor is what the function in a transform gets."""
