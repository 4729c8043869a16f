"""Deep Residual Learning for Image Recognition, 2015.

Sizes: Table 1, columns 18-layer and 50-layer; 1000 classes. As in today's
usual code, a bottleneck strides in its 3x3 convolution, not in its first 1x1.
"""

from torch import Tensor, nn


def _conv(inputs: int, outputs: int, size: int, stride: int = 1) -> nn.Conv2d:
    """A convolution that keeps the resolution but for its stride."""
    return nn.Conv2d(
        inputs, outputs, size, stride, padding=size // 2, bias=False
    )


class BasicBlock(nn.Module):
    """Two 3x3 convolutions beside a shortcut."""

    expansion = 1

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = _conv(inputs, width, 3, stride)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = _conv(width, width, 3)
        self.bn2 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = _shortcut(inputs, width, stride)

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            x = self.downsample(x)
        out += x
        x = self.relu(out)
        return x


class Bottleneck(nn.Module):
    """1x1, 3x3, 1x1 convolutions beside a shortcut; four times as wide out."""

    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = width * self.expansion
        self.conv1 = _conv(inputs, width, 1)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = _conv(width, width, 3, stride)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = _conv(width, outputs, 1)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = _shortcut(inputs, outputs, stride)

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        if self.downsample is not None:
            x = self.downsample(x)
        out += x
        x = self.relu(out)
        return x


def _shortcut(inputs: int, outputs: int, stride: int) -> nn.Sequential | None:
    """The projection a shortcut needs, or None where x itself fits."""
    if stride == 1 and inputs == outputs:
        return None
    return nn.Sequential(
        _conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs)
    )


class ResNet(nn.Module):
    """Images (N, 3, H, W) to logits (N, classes)."""

    def __init__(
        self,
        block: type[BasicBlock] | type[Bottleneck],
        depths: tuple[int, int, int, int],
        classes: int = 1000,
    ) -> None:
        super().__init__()
        self._channels = 64
        self.conv1 = _conv(3, 64, 7, stride=2)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = self._stage(block, 64, depths[0], stride=1)
        self.layer2 = self._stage(block, 128, depths[1], stride=2)
        self.layer3 = self._stage(block, 256, depths[2], stride=2)
        self.layer4 = self._stage(block, 512, depths[3], stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(self._channels, classes)

    def _stage(
        self,
        block: type[BasicBlock] | type[Bottleneck],
        width: int,
        depth: int,
        stride: int,
    ) -> nn.Sequential:
        blocks: list[nn.Module] = []
        for i in range(depth):
            blocks.append(block(self._channels, width, stride if i == 0 else 1))
            self._channels = width * block.expansion
        return nn.Sequential(*blocks)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer1(x)
        x = self.layer2(x)
        x = self.layer3(x)
        x = self.layer4(x)
        x = self.avgpool(x).flatten(1)
        x = self.fc(x)
        return x


def resnet18() -> ResNet:
    """ResNet-18."""
    return ResNet(BasicBlock, (2, 2, 2, 2))


def resnet50() -> ResNet:
    """ResNet-50."""
    return ResNet(Bottleneck, (3, 4, 6, 3))
