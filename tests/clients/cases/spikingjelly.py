"""spikingjelly: networks converted to spiking ones, on their graph."""

from __future__ import annotations

import torch
from spikingjelly.activation_based import ann2snn
from torch import nn
from torch.fx import GraphModule

from fx.use_def.values import AnyValue
from tests.clients.record import case, module

PACKAGES = ("spikingjelly", "torch")


class Small(nn.Module):
    """A convolution with a norm, pooling, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4)
        self.relu, self.pool = nn.ReLU(), nn.AvgPool2d(2)
        self.head, self.last = nn.Linear(4 * 9, 10), nn.ReLU()

    def forward(self, x: AnyValue) -> AnyValue:
        """The scores of ten classes."""
        y = self.pool(self.relu(self.norm(self.conv(x))))
        return self.last(self.head(y.flatten(1)))


def main() -> None:
    """Convert by each rule for thresholds."""
    torch.manual_seed(1)
    x = torch.rand(2, 1, 8, 8)
    for mode in ("Max", "99.9%", 0.5):
        with case(f"by {mode}") as found, torch.no_grad():
            recipe = ann2snn.RateCodingRecipe(
                dataloader=[(x, torch.zeros(2))], mode=mode
            )
            made = ann2snn.Converter(recipe).convert(Small().eval())
            assert isinstance(made, GraphModule)
            module(found, made, x)
