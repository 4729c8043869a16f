"""ResNet-18 is traced, and shown before and after a pass."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import fx
from fx.passes.conv_bn_fusion import fold_conv_bn
from fx.show.document import Page
from fx.show.page import traced


def convolution(inputs: int, outputs: int, size: int, stride: int) -> nn.Conv2d:
    """A convolution without a bias, since a BatchNorm follows."""
    return nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = convolution(inputs, width, 3, stride)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = convolution(width, width, 3, 1)
        self.bn2 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        self.shortcut = nn.Sequential()
        if inputs != width:
            self.shortcut.append(convolution(inputs, width, 1, stride))
            self.shortcut.append(nn.BatchNorm2d(width))

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        x = self.relu(out + self.shortcut(x))
        return x


class ResNet18(nn.Module):
    """Images to logits."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = convolution(3, 64, 7, 2)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = nn.Sequential(Block(64, 64, 1), Block(64, 64, 1))
        self.layer2 = nn.Sequential(Block(64, 128, 2), Block(128, 128, 1))
        self.layer3 = nn.Sequential(Block(128, 256, 2), Block(256, 256, 1))
        self.layer4 = nn.Sequential(Block(256, 512, 2), Block(512, 512, 1))
        self.fc = nn.Linear(512, 1000)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        x = self.fc(x.mean((2, 3)))
        return x


def page() -> Page:
    """The page: on the left the model, on the right what the pass made."""
    before = traced(ResNet18().eval())  # with the lines of its program
    after = copy.deepcopy(before)
    count = fold_conv_bn(after)
    x = torch.randn(1, 3, 224, 224)
    print(f"{count} BatchNorms folded:", end=" ")
    print(f"{len(before.graph.nodes)} nodes became {len(after.graph.nodes)}")
    print("results agree:", torch.allclose(before(x), after(x), atol=1e-3))
    return fx.show(before, x, after=after, title="ResNet-18, BatchNorm folded")


def main() -> None:
    """Write the page, which any browser opens."""
    with tempfile.TemporaryDirectory() as folder:
        file = page().write(Path(folder) / "resnet18.html")
        print(f"{file.name}: {file.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
