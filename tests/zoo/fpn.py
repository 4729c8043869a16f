"""Feature Pyramid Networks for Object Detection, 2016.

Size: section 3 (d = 256) on C2-C5 of ResNet-50, whose widths are in Table 1 of
the ResNet paper. RetinaNet's pyramid (Focal Loss for Dense Object Detection,
2017, section 4) leaves C2 out and adds P6 and P7. Parameters by hand:

                                      FPN     RetinaNet
    1x1   (256 +) 512 + 1024 + 2048
          to 256                  984,064       918,272
    3x3   256 to 256, each      2,360,320     1,770,240
    P6    3x3, 2048 to 256                    4,718,848
    P7    3x3, 256 to 256                       590,080
                                3,344,384     7,997,440
"""

from typing import Literal, TypeAlias

from torch import Tensor, nn
from torch.nn import functional as F

Extra: TypeAlias = Literal["pool", "p6p7"]


class FeaturePyramid(nn.Module):
    """Feature maps, finest first, to as many and the extra ones, `width` wide.

    Each map (N, widths[i], H, W) is half as high and wide as the one before.
    `extra` adds P6 by subsampling P5, or P6 and P7 by convolutions from C5.
    """

    def __init__(
        self, widths: tuple[int, ...], extra: Extra, width: int = 256
    ) -> None:
        super().__init__()
        self.levels = len(widths)
        self.extra = extra
        self.lateral = nn.ModuleList(nn.Conv2d(w, width, 1) for w in widths)
        self.smooth = nn.ModuleList(
            nn.Conv2d(width, width, 3, padding=1) for _ in widths
        )
        if extra == "p6p7":
            self.p6 = nn.Conv2d(widths[-1], width, 3, stride=2, padding=1)
            self.p7 = nn.Conv2d(width, width, 3, stride=2, padding=1)

    def forward(self, *features: Tensor) -> tuple[Tensor, ...]:
        # Indexed, not iterated: how many there are is a hyperparameter.
        top = self.lateral[-1](features[self.levels - 1])
        pyramid = [self.smooth[-1](top)]
        for i in reversed(range(self.levels - 1)):
            side = self.lateral[i](features[i])
            top = side + F.interpolate(top, size=side.shape[-2:])
            pyramid.insert(0, self.smooth[i](top))
        if self.extra == "pool":
            pyramid.append(F.max_pool2d(pyramid[-1], kernel_size=1, stride=2))
        else:
            pyramid.append(self.p6(features[self.levels - 1]))
            pyramid.append(self.p7(F.relu(pyramid[-1])))
        return tuple(pyramid)


def fpn() -> FeaturePyramid:
    """The pyramid on ResNet-50: P2 to P6."""
    return FeaturePyramid((256, 512, 1024, 2048), extra="pool")


def retinanet_fpn() -> FeaturePyramid:
    """RetinaNet's pyramid on ResNet-50: P3 to P7."""
    return FeaturePyramid((512, 1024, 2048), extra="p6p7")
