"""torch-flops: an interpreter that counts what each node computes."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Final

import torch
from torch import nn
from torch_flops import TorchFLOPsByFX

from tests.clients.record import case
from tests.zoo.resnet import BasicBlock, ResNet

PACKAGES = ("torch", "torch-flops")

MODELS: Final[dict[str, Callable[[], nn.Module]]] = {
    "resnet": lambda: ResNet(BasicBlock, (1, 1, 1, 1), 10),
    "linear": lambda: nn.Sequential(
        nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)
    ),
    "normed": lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)),
}


def main() -> None:
    """Count each network, and print the tables."""
    torch.cuda.reset_peak_memory_stats = lambda *_: None  # it asks the CPU, too
    for name, make in MODELS.items():
        x = torch.rand(2, 3) if name == "linear" else torch.rand(1, 3, 32, 32)
        with case(name) as found, torch.no_grad():
            counter = TorchFLOPsByFX(make().eval())
            with contextlib.redirect_stdout(io.StringIO()):
                counter.propagate(x)
                found["flops"] = counter.print_total_flops(show=False)
            found["graph"] = counter.graph_model.graph
