"""A small network that quantising has something to do in."""

from __future__ import annotations

import torch
from torch import nn

from fx.use_def.values import AnyValue

__all__ = ["Small"]


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
