"""A stand-in for torch.nn.functional, whose functions have rules elsewhere."""

from __future__ import annotations

from .._C import _nn
from .._functions import FUNCTIONS, of_torch
from .._tensor import AnyValue

linear, gelu = _nn.linear, _nn.gelu
globals().update(
    {
        name: function
        for name, function in FUNCTIONS.items()
        if name.startswith(("conv", "avg_pool", "pixel_", "cosine_"))
        or name in ("sigmoid", "tanh")
    }
)


def __getattr__(name: str) -> AnyValue:
    """A function, made when it is first asked for."""
    return globals().setdefault(name, of_torch("torch.nn.functional", name))
