"""segmentation-models-pytorch: each architecture, with small encoders."""

from __future__ import annotations

from functools import partial

import segmentation_models_pytorch as smp

from fx.use_def.values import AnyValue
from tests.clients.zoos import trace_all

PACKAGES = ("segmentation-models-pytorch", "torch")

ENCODERS = ("resnet18", "mobilenet_v2", "efficientnet-b0")
ARCHITECTURES = """
Unet UnetPlusPlus MAnet Linknet FPN PSPNet DeepLabV3 DeepLabV3Plus PAN UPerNet
""".split()


def _made(name: str, encoder: str) -> AnyValue:
    """A model that does not look at the size of its input."""
    model = getattr(smp, name)(encoder, encoder_weights=None)
    model.requires_divisible_input_shape = False
    return model


def main() -> None:
    """Trace each with each."""
    trace_all(
        {
            f"{name}, {encoder}": partial(_made, name, encoder)
            for name in ARCHITECTURES
            for encoder in ENCODERS
        }
    )
