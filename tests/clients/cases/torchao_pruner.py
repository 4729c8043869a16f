"""torchao: a pruner that removes rows of weights, by patterns in a trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import torch
from torch import nn
from torch.fx import GraphModule
from torchao.prototype.sparsity.pruner import (
    FPGMPruner,
    LSTMSaliencyPruner,
    SaliencyPruner,
)

from fx.use_def.values import AnyValue
from tests.clients.record import case, module

PACKAGES = ("torch", "torchao")


class Recurrent(nn.Module):
    """An LSTM, of which a linear layer reads the outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.norm = nn.LSTM(4, 8), nn.LayerNorm(8)
        self.head = nn.Linear(8, 2)

    def forward(self, x: AnyValue) -> AnyValue:
        """The scores of two classes, at each time."""
        y, _ = self.lstm(x)
        return self.head(self.norm(y))


def _linear() -> nn.Module:
    return nn.Sequential(
        nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.Linear(16, 4)
    )


def _pictures() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(3, 8, 3), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(8, 8, 3)),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)),
    )


Case: TypeAlias = tuple[
    str, Callable[[], nn.Module], tuple[int, ...], AnyValue, list[str]
]

CASES: Final[list[Case]] = [
    (
        "linear layers",
        *(_linear, (2, 8), SaliencyPruner({"sparsity_level": 0.5})),
        ["0.weight", "2.weight"],
    ),
    (
        "convolutions",
        *(_pictures, (2, 3, 12, 12), SaliencyPruner({"sparsity_level": 0.5})),
        ["0.weight", "3.weight"],
    ),
    (
        "convolutions, by their median",
        *(_pictures, (2, 3, 12, 12), FPGMPruner(0.5)),
        ["0.weight", "3.weight"],
    ),
    (
        "LSTM",
        *(Recurrent, (5, 2, 4), LSTMSaliencyPruner({"sparsity_level": 0.5})),
        ["lstm.weight_ih_l0", "lstm.weight_hh_l0"],
    ),
]
"""Name, network, its input's shape, a pruner, and the weights for it."""


def main() -> None:
    """Prune each network."""
    for name, make, shape, pruner, weights in CASES:
        with case(name) as found, torch.no_grad():
            net = make().eval()
            pruner.prepare(net, [{"tensor_fqn": each} for each in weights])
            pruner.enable_mask_update = True
            pruner.step()
            gm = pruner.prune()
            assert isinstance(gm, GraphModule)
            module(found, gm, torch.rand(shape))
            found["sizes"] = {k: v.shape for k, v in gm.state_dict().items()}
