"""A stand-in for torch.nn.functional: how its functions change a shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from .. import _functions as known
from .._C import _nn
from .._functions import FUNCTIONS, alike, of_torch
from .._tensor import AnyValue, Tensor


def _pooled(
    input: Tensor,
    kernel_size: AnyValue,
    stride: AnyValue = None,
    padding: AnyValue = 0,
    *args: AnyValue,
    **more: AnyValue,
) -> Tensor:
    """An image after a window has passed over it."""
    step = kernel_size if stride is None else stride
    space = known.pooled(input.shape[-2:], kernel_size, step, padding)
    return Tensor([*input.shape[:-2], *space], input.dtype)


_ALIKE: Final = (
    "relu silu elu selu leaky_relu hardtanh hardswish mish softsign logsigmoid "
    "dropout softmax log_softmax softmin layer_norm batch_norm group_norm "
    "instance_norm normalize gelu"
)
_RULES: Final[dict[str, Callable[..., AnyValue]]] = {
    **dict.fromkeys(_ALIKE.split(), alike),
    **dict.fromkeys("cross_entropy mse_loss nll_loss".split(), known.lost),
    **dict.fromkeys(("max_pool2d", "avg_pool2d"), _pooled),
    "embedding": known.embedding,
    "scaled_dot_product_attention": known.scaled_dot_product_attention,
}

linear, gelu = _nn.linear, _nn.gelu
conv2d = FUNCTIONS["conv2d"]
sigmoid, tanh = FUNCTIONS["sigmoid"], FUNCTIONS["tanh"]


def __getattr__(name: str) -> AnyValue:
    """A function, made when it is first asked for."""
    made = of_torch("torch.nn.functional", name, _RULES.get(name))
    return globals().setdefault(name, made)
