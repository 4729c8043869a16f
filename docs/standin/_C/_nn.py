"""A stand-in for torch._C._nn: functions of torch.nn.functional without one."""

from __future__ import annotations

from typing import Final

from .._functions import MADE, alike, matmul, overridable, t
from .._tensor import AnyValue, Tensor


def _linear(input: Tensor, weight: Tensor, bias: AnyValue = None) -> Tensor:
    """A product with a matrix, and a sum."""
    return matmul(input, t(weight))


linear: Final = overridable(_linear, "linear", "torch._C._nn")
gelu: Final = overridable(alike, "gelu", "torch._C._nn")


def __getattr__(name: str) -> AnyValue:
    """A function that torch.nn.functional has under this name."""
    if (__name__, name) not in MADE:
        raise AttributeError(name)
    return MADE[__name__, name]
