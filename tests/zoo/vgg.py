"""Very Deep Convolutional Networks for Large-Scale Image Recognition, 2014.

Size: Table 1, column D (VGG-16); Table 2 gives its 138 million parameters.
"""

import torch
from torch import Tensor, nn

# Table 1, column D: the widths of the 3x3 convolutions between the poolings.
_COLUMN_D = (
    (64, 64),
    (128, 128),
    (256, 256, 256),
    (512, 512, 512),
    (512, 512, 512),
)


class VGG(nn.Module):
    """Images (N, 3, H, W), H and W at least 32, to logits (N, classes)."""

    def __init__(
        self,
        stages: tuple[tuple[int, ...], ...] = _COLUMN_D,
        classes: int = 1000,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        self.features = _features(stages)
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(
            nn.Linear(stages[-1][-1] * 7 * 7, 4096),
            nn.ReLU(inplace=True),
            nn.Dropout(dropout),
            nn.Linear(4096, 4096),
            nn.ReLU(inplace=True),
            nn.Dropout(dropout),
            nn.Linear(4096, classes),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x)
        x = self.avgpool(x)
        x = torch.flatten(x, 1)
        x = self.classifier(x)
        return x


def _features(stages: tuple[tuple[int, ...], ...]) -> nn.Sequential:
    layers: list[nn.Module] = []
    channels = 3
    for widths in stages:
        for width in widths:
            layers += [
                nn.Conv2d(channels, width, 3, padding=1),
                nn.ReLU(inplace=True),
            ]
            channels = width
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers)


def vgg16() -> VGG:
    """VGG-16, without batch normalisation."""
    return VGG()
