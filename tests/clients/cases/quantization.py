"""PyTorch's FX quantisation: fuse, prepare, convert, QAT, and its tools."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from typing import Final

import torch
import torch.fx
from torch import nn
from torch.ao.ns import _numeric_suite_fx as numeric_suite
from torch.ao.quantization import (
    QConfigMapping,
    default_dynamic_qconfig,
    get_default_qat_qconfig_mapping,
    get_default_qconfig_mapping,
    quantize_fx,
)
from torch.ao.quantization.fx._equalize import default_equalization_qconfig
from torch.ao.quantization.fx._model_report.detector import (
    DynamicStaticDetector,
    PerChannelDetector,
)
from torch.ao.quantization.fx._model_report.model_report import ModelReport
from torchvision import models

from fx.use_def.values import AnyValue
from tests.clients.record import Notes, case, module

PACKAGES = (
    "torch",
    "torchvision",
)


class Convolutions(nn.Module):
    """Two convolutions with batch norms, and a skip."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(8)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(8)

    def forward(self, x: AnyValue) -> AnyValue:
        x = self.relu(self.bn1(self.conv1(x)))
        return torch.relu(operator.add(self.bn2(self.conv2(x)), x))


class Functions(nn.Module):
    """Functions and methods, of which some are observed."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(16, 16)
        self.weight: AnyValue = nn.Parameter(torch.randn(4, 16))

    def forward(self, x: AnyValue) -> AnyValue:
        x = nn.functional.relu(self.linear(x.flatten(1)[:, :16]))
        y = nn.functional.linear(x, self.weight)
        return torch.cat([y, y.sigmoid() * 2, y.reshape(-1, 4)], dim=1)


def _linears() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4))


class Recurrent(nn.Module):
    """An LSTM, and a linear of what it ends with."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(16, 8)
        self.linear = nn.Linear(8, 4)

    def forward(self, x: AnyValue) -> AnyValue:
        return self.linear(self.lstm(x)[0])


MODELS: Final[dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]]] = {
    "convolutions": (Convolutions, (2, 3, 8, 8)),
    "functions": (Functions, (2, 4, 8)),
    "linears": (_linears, (2, 16)),
    "resnet18": (lambda: models.resnet18(num_classes=9), (1, 3, 64, 64)),
    "mobilenet_v2": (lambda: models.mobilenet_v2(), (1, 3, 64, 64)),
    "googlenet": (lambda: models.googlenet(init_weights=False), (2, 3, 96, 96)),
}


def _made(name: str) -> tuple[nn.Module, torch.Tensor]:
    """A model in evaluation, and its input."""
    make, shape = MODELS[name]
    torch.manual_seed(0)
    return make().eval(), torch.rand(shape)


def _static(name: str) -> None:
    """Fuse, prepare, calibrate, convert."""
    model, x = _made(name)
    with case(f"{name}: fuse") as found:
        module(found, quantize_fx.fuse_fx(copy.deepcopy(model)), x)
    mapping = get_default_qconfig_mapping("x86")
    with case(f"{name}: prepare and convert") as found:
        prepared = quantize_fx.prepare_fx(copy.deepcopy(model), mapping, (x,))
        found["prepared"] = prepared.code
        prepared(x)
        module(found, quantize_fx.convert_fx(copy.deepcopy(prepared)), x)
        reference = quantize_fx.convert_to_reference_fx(prepared)
        found["reference"] = reference.code
        found["of the reference"] = reference(x)


def _trained(name: str) -> None:
    """A step of training with fake quantisation, then converted."""
    model, x = _made(name)
    with case(f"{name}: QAT") as found:
        mapping = get_default_qat_qconfig_mapping("x86")
        prepared = quantize_fx.prepare_qat_fx(model.train(), mapping, (x,))
        found["prepared"] = prepared.code
        torch.manual_seed(0)
        result = prepared(x)
        out: AnyValue = getattr(result, "logits", result)
        loss = out.square().mean()
        loss.backward()
        found["loss"] = loss
        with torch.no_grad():
            for parameter in prepared.parameters():
                if parameter.grad is not None:
                    parameter.sub_(parameter.grad, alpha=0.01)
        module(found, quantize_fx.convert_fx(prepared.eval()), x)


def _dynamic() -> None:
    """Weights alone are quantised before the run."""
    mapping = QConfigMapping().set_global(default_dynamic_qconfig)
    for name, model in ("linears", _linears()), ("recurrent", Recurrent()):
        x = torch.rand(2, 16) if name == "linears" else torch.rand(3, 2, 16)
        with case(f"{name}: dynamic") as found:
            prepared = quantize_fx.prepare_fx(model.eval(), mapping, (x,))
            module(found, quantize_fx.convert_fx(prepared), x)


def _compare(found: Notes) -> None:
    """The numeric suite: weights and activations of two versions."""
    model, x = _made("convolutions")
    mapping = get_default_qconfig_mapping("x86")
    prepared = quantize_fx.prepare_fx(copy.deepcopy(model), mapping, (x,))
    prepared(x)
    quantized = quantize_fx.convert_fx(copy.deepcopy(prepared))
    found["weights"] = numeric_suite.extract_weights(
        "a", prepared, "b", quantized
    )
    one, two = numeric_suite.add_loggers(
        "a", prepared, "b", quantized, numeric_suite.OutputLogger
    )
    found["loggers"] = f"{one.code}{two.code}"
    found["results"] = one(x), two(x)
    found["logged"] = numeric_suite.extract_logger_info(
        one, two, numeric_suite.OutputLogger, "b"
    )
    shadows = numeric_suite.add_shadow_loggers(
        "a", prepared, "b", quantized, numeric_suite.OutputLogger
    )
    found["shadows"] = shadows.code


def _equalize(found: Notes) -> None:
    """Weights of neighbours are scaled to one range."""
    model, x = _made("linears")
    equal: AnyValue = QConfigMapping()
    equal.set_global(default_equalization_qconfig)
    mapping = get_default_qconfig_mapping("x86")
    prepared = quantize_fx.prepare_fx(
        model, mapping, (x,), _equalization_config=equal
    )
    prepared(x)
    module(found, quantize_fx.convert_fx(prepared), x)


def _report(found: Notes) -> None:
    """The model report: detectors are inserted, and say what they saw."""
    model, x = _made("convolutions")
    mapping = get_default_qconfig_mapping("x86")
    prepared = quantize_fx.prepare_fx(model, mapping, (x,))
    detector: AnyValue = DynamicStaticDetector
    detectors = {PerChannelDetector(), detector()}
    report = ModelReport(prepared, detectors)
    watched = report.prepare_detailed_calibration()
    found["watched"] = watched.code
    watched(x)
    texts = report.generate_model_report(remove_inserted_observers=True)
    found["report"] = "\n".join(sorted(text for text, _ in texts.values()))


def main() -> None:
    """All cases."""
    for name in MODELS:
        _static(name)
        _trained(name)
    _dynamic()
    for title, run in (
        ("numeric suite", _compare),
        ("equalisation", _equalize),
        ("model report", _report),
    ):
        with case(title) as found:
            run(found)
