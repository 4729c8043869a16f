"""U-Net: Convolutional Networks for Biomedical Image Segmentation, 2015.

Size: Figure 1: 23 unpadded convolutions, 1 channel in, 2 classes out, 572x572
pixels to 388x388. The paper gives no count of parameters; by hand, with
9io + o for a 3x3 convolution and 4io + o for a 2x2 up-convolution:

    down 1-64-64                    37,568
    down 64-128-128                221,440
    down 128-256-256               885,248
    down 256-512-512             3,539,968
    bottom 512-1024-1024        14,157,824
    up-convolutions              2,786,240
    up 1024-512-512              7,078,912
    up 512-256-256               1,769,984
    up 256-128-128                 442,624
    up 128-64-64                   110,720
    last 1x1, 64-2                     130
                                31,030,658
"""

import torch
from torch import Tensor, nn


class DoubleConv(nn.Sequential):
    """Two unpadded 3x3 convolutions: each side loses four pixels."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(
            nn.Conv2d(inputs, outputs, 3),
            nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3),
            nn.ReLU(inplace=True),
        )


class Up(nn.Module):
    """Doubles the resolution and joins what the way down had there."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.up = nn.ConvTranspose2d(inputs, inputs // 2, 2, stride=2)
        self.conv = DoubleConv(inputs, inputs // 2)

    def forward(self, x: Tensor, skip: Tensor) -> Tensor:
        x = self.up(x)
        x = torch.cat([_crop(skip, like=x), x], dim=1)
        x = self.conv(x)
        return x


def _crop(x: Tensor, like: Tensor) -> Tensor:
    """The middle of x, as high and wide as `like`."""
    height, width = like.shape[-2:]
    top = (x.size(2) - height) // 2
    left = (x.size(3) - width) // 2
    return x[:, :, top : top + height, left : left + width]


class UNet(nn.Module):
    """Images (N, 1, H, W) to logits (N, classes, H - 184, W - 184).

    H and W are 188 + 16k, so that all four poolings divide them evenly.
    """

    def __init__(
        self, channels: int = 1, classes: int = 2, width: int = 64
    ) -> None:
        super().__init__()
        widths = [width * 2**i for i in range(5)]
        self.downs = nn.ModuleList()
        for outputs in widths:
            self.downs.append(DoubleConv(channels, outputs))
            channels = outputs
        self.pool = nn.MaxPool2d(2)
        self.ups = nn.ModuleList(Up(inputs) for inputs in widths[:0:-1])
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        skips: list[Tensor] = []
        for i, down in enumerate(self.downs):
            if i > 0:
                skips.append(x)
                x = self.pool(x)
            x = down(x)
        for up in self.ups:
            x = up(x, skips.pop())
        x = self.head(x)
        return x


def unet() -> UNet:
    """The U-Net of Figure 1."""
    return UNet()
