"""A stand-in for torch._C._nn: functions of torch.nn.functional without one."""

from __future__ import annotations

from .._functions import MADE, of_torch
from .._tensor import AnyValue


def __getattr__(name: str) -> AnyValue:
    """A function that torch.nn.functional has under this name."""
    if name in ("linear", "gelu"):
        return of_torch("torch.nn.functional", name)
    if (__name__, name) not in MADE:
        raise AttributeError(name)
    return MADE[__name__, name]
