"""Small networks that clients have something to do in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch
from torch import nn

from fx.use_def.values import AnyValue

__all__ = ["EXPORTS", "NETWORKS", "Small"]


class Small(nn.Module):
    """A convolution with a norm, a residual, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.again = nn.Conv2d(8, 8, 3, padding=1)
        self.head = nn.Linear(8, 10)

    def forward(self, x: AnyValue) -> AnyValue:
        """The scores of ten classes."""
        y = torch.relu(self.norm(self.conv(x)))
        y = torch.relu(self.again(y) + y)
        return self.head(y.mean((2, 3)))


class Attention(nn.Module):
    """Tokens that look at each other."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.norm = nn.Embedding(20, 8), nn.LayerNorm(8)
        self.query, self.head = nn.Linear(8, 8), nn.Linear(8, 10)

    def forward(self, x: AnyValue) -> AnyValue:
        """The scores of ten classes."""
        y = self.norm(self.embedding(x))
        weights = torch.softmax(self.query(y) @ y.transpose(1, 2), -1)
        return self.head(nn.functional.gelu(weights @ y)[:, 0])


_DRAW: Final = torch.Generator().manual_seed(1)

NETWORKS: Final[dict[str, tuple[Callable[[], nn.Module], torch.Tensor]]] = {
    "convolutions": (Small, torch.rand(2, 3, 8, 8, generator=_DRAW)),
    "attention": (Attention, torch.randint(20, (2, 5), generator=_DRAW)),
}
"""What makes a network, and an input."""

EXPORTS: Final[dict[str, dict[int, AnyValue]]] = {
    "one shape": {},
    "any batch": {0: torch.export.Dim("batch", min=2, max=64)},
}
"""Which sizes of an input are free when it is exported."""
