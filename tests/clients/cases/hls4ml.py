"""hls4ml: networks as C++ for circuits, layer by layer of their trace."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import torch
from hls4ml import converters, utils
from torch import nn

from fx.use_def.values import AnyValue
from tests.clients.record import case

PACKAGES = ("hls4ml", "torch")


class Joined(nn.Module):
    """Two layers whose results are added, one of them through functions."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(8, 8), nn.Linear(8, 8)
        self.last = nn.Linear(16, 4)

    def forward(self, x: AnyValue) -> AnyValue:
        """The probabilities of four classes."""
        y = torch.relu(self.one(x)) + self.two(x)
        y = torch.cat([y, x], dim=1)
        return nn.functional.softmax(self.last(y), dim=-1)


NETS: Final[dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]]] = {
    "linear": (
        lambda: nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)),
        (8,),
    ),
    "convolutions": (
        lambda: nn.Sequential(
            *(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()),
            *(nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 4)),
        ),
        (3, 8, 8),
    ),
    "joined": (Joined, (8,)),
    "in time": (lambda: Recurrent(), (5, 4)),
}


class Recurrent(nn.Module):
    """A GRU, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.gru, self.head = nn.GRU(4, 8, batch_first=True), nn.Linear(8, 2)

    def forward(self, x: AnyValue) -> AnyValue:
        """The scores of two classes, at each time."""
        y, _ = self.gru(x)
        return self.head(y)


def main() -> None:
    """Convert each, and write its program."""
    for name, (make, shape) in NETS.items():
        torch.manual_seed(0)
        net = make().eval()
        for backend in ("Vitis", "oneAPI"):
            with (
                case(f"{name}, {backend}") as found,
                tempfile.TemporaryDirectory() as folder,
            ):
                settings = utils.config_from_pytorch_model(
                    net, shape, granularity="name", backend=backend
                )
                made = converters.convert_from_pytorch_model(
                    net,
                    output_dir=folder,
                    backend=backend,
                    hls_config=settings,
                )
                found["settings"] = settings
                found["layers"] = [
                    (each.name, each.class_name, str(each.inputs))
                    for each in made.get_layers()
                ]
                made.write()
                stamp = made.config.get_config_value("Stamp")  # drawn anew
                found["files"] = {
                    str(file.relative_to(folder)): hashlib.sha256(
                        file.read_bytes().replace(stamp.encode(), b"")
                    ).hexdigest()
                    for file in sorted(Path(folder).rglob("*"))
                    if file.suffix in (".cpp", ".h")
                }
