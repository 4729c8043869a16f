"""fairscale: models cut into shards by a trace."""

from __future__ import annotations

from typing import Final

from fairscale.experimental.nn.auto_shard import shard_model
from torch import nn

from tests.clients.record import case
from tests.clients.small import NETWORKS
from tests.zoo.resnet import BasicBlock, ResNet

PACKAGES = ("fairscale", "torch")

MODELS: Final = {
    "linear": lambda: nn.Sequential(*[nn.Linear(4, 4) for _ in range(6)]),
    "resnet": lambda: ResNet(BasicBlock, (1, 1, 1, 1), 10),
    **{name: make for name, (make, _) in NETWORKS.items()},
}


def main() -> None:
    """Cut each model into two to five."""
    for name, make in MODELS.items():
        for count in range(2, 6):
            with case(f"{name}, {count}") as found:
                for place, shard in enumerate(shard_model(make(), count)):
                    found[f"graph {place}"] = shard.graph
                    found[f"code {place}"] = shard.code
