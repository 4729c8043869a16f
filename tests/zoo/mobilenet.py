"""MobileNetV2: Inverted Residuals and Linear Bottlenecks, 2018.

Size: Table 2; Table 4 gives its 3.4 million parameters.
"""

from torch import Tensor, nn

# Table 2: expansion factor t, output channels c, repeats n, first stride s.
_TABLE_2 = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


class ConvBNReLU(nn.Sequential):
    """A convolution without bias, batch normalisation, ReLU6."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        size: int,
        stride: int = 1,
        groups: int = 1,
    ) -> None:
        super().__init__(
            nn.Conv2d(
                inputs,
                outputs,
                size,
                stride,
                padding=(size - 1) // 2,
                groups=groups,
                bias=False,
            ),
            nn.BatchNorm2d(outputs),
            nn.ReLU6(inplace=True),
        )


class InvertedResidual(nn.Module):
    """Expand, filter each channel, project without activation (Table 1)."""

    def __init__(
        self, inputs: int, outputs: int, stride: int, expansion: int
    ) -> None:
        super().__init__()
        hidden = inputs * expansion
        layers: list[nn.Module] = []
        if expansion != 1:
            layers.append(ConvBNReLU(inputs, hidden, 1))
        layers += [
            ConvBNReLU(hidden, hidden, 3, stride, groups=hidden),
            nn.Conv2d(hidden, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        ]
        self.conv = nn.Sequential(*layers)
        self.use_residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.conv(x)
        if self.use_residual:
            return x + y
        return y


class MobileNetV2(nn.Module):
    """Images (N, 3, H, W) to logits (N, classes)."""

    def __init__(self, classes: int = 1000, dropout: float = 0.2) -> None:
        super().__init__()
        layers: list[nn.Module] = [ConvBNReLU(3, 32, 3, stride=2)]
        channels = 32
        for expansion, width, repeats, stride in _TABLE_2:
            for i in range(repeats):
                step = stride if i == 0 else 1
                layers.append(
                    InvertedResidual(channels, width, step, expansion)
                )
                channels = width
        layers.append(ConvBNReLU(channels, 1280, 1))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(
            nn.Dropout(dropout), nn.Linear(1280, classes)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x)
        x = x.mean(dim=(2, 3))
        x = self.classifier(x)
        return x


def mobilenet_v2() -> MobileNetV2:
    """MobileNetV2 at width multiplier 1."""
    return MobileNetV2()
