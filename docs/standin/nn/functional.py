"""A stand-in for torch.nn.functional."""

from __future__ import annotations

from .. import _functions as of_torch
from .._C import _nn
from .._functions import FUNCTIONS, alike, functional
from .._tensor import AnyValue, Tensor

linear, gelu = _nn.linear, _nn.gelu
conv2d = FUNCTIONS["conv2d"]


@functional("input")
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """No number below zero."""
    return alike(input)


@functional("input")
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """A smooth relu."""
    return alike(input)


@functional("input")
def dropout(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Some numbers as zeros."""
    return alike(input)


@functional("input")
def softmax(
    input: Tensor,
    dim: int | None = None,
    _stacklevel: int = 3,
    dtype: AnyValue = None,
) -> Tensor:
    """Numbers that add up to one."""
    return alike(input)


@functional("input", "normalized_shape")
def layer_norm(
    input: Tensor,
    normalized_shape: AnyValue,
    weight: AnyValue = None,
    bias: AnyValue = None,
    eps: float = 1e-5,
) -> Tensor:
    """Numbers around zero."""
    return alike(input)


sigmoid, tanh = of_torch.FUNCTIONS["sigmoid"], of_torch.FUNCTIONS["tanh"]
