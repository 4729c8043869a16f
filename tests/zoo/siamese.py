"""Siamese Neural Networks for One-shot Image Recognition, 2015.

Size: Figure 4: characters of 105x105 pixels. The paper gives no count of
parameters; by hand:

    10x10 convolution      1-64           6,464
    7x7 convolution       64-128        401,536
    4x4 convolution      128-128        262,272
    4x4 convolution      128-256        524,544
    fully connected    9,216-4,096   37,752,832
    fully connected    4,096-1            4,097
                                     38,951,745
"""

import torch
from torch import Tensor, nn


class Twin(nn.Module):
    """A character (N, 1, 105, 105) to its features (N, 4096)."""

    def __init__(self) -> None:
        super().__init__()
        # Neither ReLU nor pooling has state, so one of each serves all four.
        relu = nn.ReLU(inplace=True)
        pool = nn.MaxPool2d(2)
        self.features = nn.Sequential(
            nn.Conv2d(1, 64, 10),
            relu,
            pool,
            nn.Conv2d(64, 128, 7),
            relu,
            pool,
            nn.Conv2d(128, 128, 4),
            relu,
            pool,
            nn.Conv2d(128, 256, 4),
            relu,
        )
        self.fc = nn.Linear(256 * 6 * 6, 4096)

    def forward(self, image: Tensor) -> Tensor:
        x = self.features(image)
        return torch.sigmoid(self.fc(x.view(x.size(0), -1)))


class Siamese(nn.Module):
    """How probable it is that two images show one character: (N, 1).

    `left` and `right` are one module under two names, called once by each.
    """

    def __init__(self) -> None:
        super().__init__()
        self.left = Twin()
        self.right = self.left
        self.score = nn.Linear(4096, 1)

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        distance = torch.abs(self.left(left) - self.right(right))
        return torch.sigmoid(self.score(distance))


def siamese() -> Siamese:
    """The network of Figure 4."""
    return Siamese()
