"""A stand-in for torch.nn.functional, whose functions have rules elsewhere."""

from __future__ import annotations

from .._functions import of_torch
from .._tensor import AnyValue

sigmoid, tanh = of_torch("torch", "sigmoid"), of_torch("torch", "tanh")


def __getattr__(name: str) -> AnyValue:
    """A function, made when it is first asked for."""
    return globals().setdefault(name, of_torch("torch.nn.functional", name))
