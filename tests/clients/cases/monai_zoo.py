"""MONAI: its networks for images in two and three dimensions."""

from __future__ import annotations

from functools import partial
from typing import Final

from monai.networks import nets

from fx.use_def.values import AnyValue
from tests.clients.zoos import trace_all

PACKAGES = ("monai", "torch")

FLAT: Final[dict[str, AnyValue]] = {
    "spatial_dims": 2,
    "in_channels": 1,
    "out_channels": 2,
}

MODELS: Final[dict[str, AnyValue]] = {
    "UNet": partial(nets.UNet, 2, 1, 2, channels=(4, 8, 16), strides=(2, 2)),
    "BasicUNet": partial(nets.BasicUNet, **FLAT),
    "BasicUNetPlusPlus": partial(nets.BasicUNetPlusPlus, **FLAT),
    "AttentionUnet": partial(
        nets.AttentionUnet, **FLAT, channels=(4, 8), strides=(2,)
    ),
    "SegResNet": partial(nets.SegResNet, 2, in_channels=1, out_channels=2),
    "SegResNetDS": partial(nets.SegResNetDS, 2, in_channels=1, out_channels=2),
    "VNet": partial(nets.VNet, 2),
    "DynUNet": partial(
        nets.DynUNet,
        **FLAT,
        kernel_size=[3, 3, 3],
        strides=[1, 2, 2],
        upsample_kernel_size=[2, 2],
    ),
    "HighResNet": partial(nets.HighResNet, 2),
    "AutoEncoder": partial(
        nets.AutoEncoder, **FLAT, channels=(4, 8), strides=(2, 2)
    ),
    "DenseNet121": partial(nets.DenseNet121, **FLAT),
    "resnet10": partial(nets.resnet10, spatial_dims=2, n_input_channels=1),
    "resnet50": partial(nets.resnet50, spatial_dims=3, n_input_channels=1),
    "EfficientNetBN": partial(
        nets.EfficientNetBN, "efficientnet-b0", pretrained=False
    ),
    "ViT": partial(nets.ViT, 1, (32, 32), (8, 8), spatial_dims=2),
    "UNETR": partial(nets.UNETR, 1, 2, (32, 32), spatial_dims=2),
    "SwinUNETR": partial(nets.SwinUNETR, 1, 2, spatial_dims=2),
    "FullyConnectedNet": partial(nets.FullyConnectedNet, 4, 2, [8, 8]),
    "MILModel": partial(nets.MILModel, 2, pretrained=False),
    "Regressor": partial(
        nets.Regressor, (1, 8, 8), (2,), channels=(4, 8), strides=(2, 2)
    ),
    "Discriminator": partial(
        nets.Discriminator, (1, 8, 8), channels=(4, 8), strides=(2, 2)
    ),
    "Generator": partial(
        nets.Generator, (4,), (4, 2, 2), channels=(4, 1), strides=(2, 2)
    ),
}


def main() -> None:
    """Trace them; one reads a number of a tensor while it is made."""
    trace_all(MODELS, "cpu")
