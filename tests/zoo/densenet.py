"""Densely Connected Convolutional Networks, 2016.

Size: Table 1, column DenseNet-121 (growth rate 32); 1000 classes.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class DenseLayer(nn.Module):
    """All feature maps so far to `growth` new ones, by a 1x1 bottleneck."""

    def __init__(self, inputs: int, growth: int, dropout: float) -> None:
        super().__init__()
        width = 4 * growth
        self.norm1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, growth, 3, padding=1, bias=False)
        self.dropout = dropout

    def forward(self, features: list[Tensor]) -> Tensor:
        x = torch.cat(features, 1)
        x = self.conv1(F.relu(self.norm1(x), inplace=True))
        x = self.conv2(F.relu(self.norm2(x), inplace=True))
        if self.dropout > 0:
            x = F.dropout(x, p=self.dropout, training=self.training)
        return x


class DenseBlock(nn.ModuleDict):
    """Layers of which each sees the block's input and all layers before it."""

    def __init__(
        self, depth: int, inputs: int, growth: int, dropout: float
    ) -> None:
        super().__init__()
        for i in range(depth):
            layer = DenseLayer(inputs + i * growth, growth, dropout)
            self.add_module(f"denselayer{i + 1}", layer)

    def forward(self, x: Tensor) -> Tensor:
        features = [x]
        for layer in self.values():
            features.append(layer(features))
        return torch.cat(features, 1)


class Transition(nn.Sequential):
    """Halves the channels and the resolution between two blocks."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.add_module("norm", nn.BatchNorm2d(inputs))
        self.add_module("relu", nn.ReLU(inplace=True))
        self.add_module("conv", nn.Conv2d(inputs, inputs // 2, 1, bias=False))
        self.add_module("pool", nn.AvgPool2d(2))


class DenseNet(nn.Module):
    """Images (N, 3, H, W), H and W at least 32, to logits (N, classes)."""

    def __init__(
        self,
        depths: tuple[int, ...],
        growth: int = 32,
        dropout: float = 0.0,
        classes: int = 1000,
    ) -> None:
        super().__init__()
        channels = 2 * growth
        self.features = nn.Sequential()
        self.features.append(
            nn.Conv2d(3, channels, 7, stride=2, padding=3, bias=False)
        )
        self.features.append(nn.BatchNorm2d(channels))
        self.features.append(nn.ReLU(inplace=True))
        self.features.append(nn.MaxPool2d(3, stride=2, padding=1))
        for i, depth in enumerate(depths):
            if i > 0:
                self.features.append(Transition(channels))
                channels //= 2
            self.features.append(DenseBlock(depth, channels, growth, dropout))
            channels += depth * growth
        self.features.append(nn.BatchNorm2d(channels))
        self.classifier = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.features(x), inplace=True)
        x = F.adaptive_avg_pool2d(x, (1, 1))
        x = self.classifier(torch.flatten(x, 1))
        return x


def densenet121() -> DenseNet:
    """DenseNet-121."""
    return DenseNet((6, 12, 24, 16))
