"""Brevitas: models are prepared for quantisation, and quantised."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch
from brevitas import fx as brevitas_fx
from brevitas.graph import calibrate
from brevitas.graph import quantize as quantizing
from torch import nn
from torchvision import models

from tests.clients.record import case, module

PACKAGES = ("brevitas",)

MODELS: Final[dict[str, Callable[[], nn.Module]]] = {
    "resnet18": lambda: models.resnet18(),
    "mobilenet_v2": lambda: models.mobilenet_v2(),
    "vgg11_bn": lambda: models.vgg11_bn(num_classes=9),
    "squeezenet1_1": lambda: models.squeezenet1_1(),
}


def _made(name: str) -> tuple[nn.Module, torch.Tensor]:
    """A model in evaluation, and a picture."""
    torch.manual_seed(0)
    return MODELS[name]().eval(), torch.rand(1, 3, 64, 64)


def main() -> None:
    """Both tracers, the preparation, and quantisation of the whole."""
    for name in MODELS:
        model, x = _made(name)
        with case(f"{name}, symbolic_trace") as found, torch.no_grad():
            module(found, brevitas_fx.symbolic_trace(model), x)
        with case(f"{name}, value_trace") as found, torch.no_grad():
            traced = brevitas_fx.value_trace(model, {"x": x})
            module(found, traced, x)
        with case(f"{name}, quantize") as found, torch.no_grad():
            prepared = quantizing.preprocess_for_quantize(
                model, equalize_iters=2
            )
            found["prepared"] = prepared.code
            found["result prepared"] = prepared(x)
            quantized = quantizing.quantize(prepared)
            with calibrate.calibration_mode(quantized):
                quantized(x)
            module(found, quantized, x)
