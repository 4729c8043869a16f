"""A stand-in for torch._C._nn: functions of torch.nn.functional without one."""

from __future__ import annotations

from typing import Final

from .. import _rules as rules
from .._functions import MADE, overridable, strictly
from .._tensor import AnyValue, Tensor


def _gelu(input: Tensor, *, approximate: str = "none") -> Tensor:
    rules.need(approximate in ("none", "tanh"))
    return rules.of_floats(input)


linear: Final = overridable(
    strictly(rules.linear, "linear"), "linear", "torch._C._nn"
)
gelu: Final = overridable(strictly(_gelu, "gelu"), "gelu", "torch._C._nn")


def __getattr__(name: str) -> AnyValue:
    """A function that torch.nn.functional has under this name."""
    if (__name__, name) not in MADE:
        raise AttributeError(name)
    return MADE[__name__, name]
