"""torchvision's classification models, made small enough to be tried."""

from __future__ import annotations

from typing import Final

import torch
from torch import nn
from torchvision import models

from fx.use_def.values import AnyValue

MODELS: Final[tuple[str, ...]] = tuple(models.list_models(module=models))
_FIXED: Final = ("vit_", "maxvit_", "inception_", "googlenet")
"""Models that take pictures of one size, or of a large one at least."""


def _fill(tensor: torch.Tensor, *_: AnyValue, **__: AnyValue) -> torch.Tensor:
    """What initialises weights here: quicker than truncated normals."""
    with torch.no_grad():
        return tensor.uniform_(-0.05, 0.05)


def make(name: str) -> nn.Module:
    """A model with random weights, the same at each call."""
    torch.manual_seed(0)
    kept = nn.init.trunc_normal_, nn.init.normal_
    nn.init.trunc_normal_ = nn.init.normal_ = _fill
    try:
        model: AnyValue = models.get_model(name, weights=None)
    finally:
        nn.init.trunc_normal_, nn.init.normal_ = kept
    made: nn.Module = model.eval()
    return made


def inputs_for(name: str) -> torch.Tensor:
    """Two small pictures for a model."""
    torch.manual_seed(1)
    size = 64
    if name.startswith(_FIXED):
        size = 224
    return torch.rand(1, 3, size, size)
