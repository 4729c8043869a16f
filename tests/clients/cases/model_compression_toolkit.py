"""MCT: networks quantised, and pruned, on a graph made of their trace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import model_compression_toolkit as mct
import torch
from torch import nn

from fx.use_def.values import AnyValue
from tests.clients.record import Notes, case
from tests.clients.small import Small

PACKAGES = ("model-compression-toolkit", "torch")

X: Final = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))


class Functions(nn.Module):
    """Functions and methods, with a constant among their arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.last = nn.Conv2d(3, 8, 3), nn.Linear(16, 4)

    def forward(self, x: AnyValue) -> AnyValue:
        """The scores of four classes."""
        y = nn.functional.hardswish(self.conv(x * 2 + torch.ones(8)))
        y = torch.cat([y.mean((2, 3)), y.amax((2, 3))], dim=1)
        return self.last(y.reshape(-1, 16))


class Wide(nn.Module):
    """Layers with more channels than are needed."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.again = nn.Conv2d(3, 64, 3), nn.Conv2d(64, 64, 3)
        self.head = nn.Linear(64, 10)

    def forward(self, x: AnyValue) -> AnyValue:
        """The scores of ten classes."""
        y = torch.relu(self.again(torch.relu(self.conv(x))))
        return self.head(y.mean((2, 3)))


def data() -> Iterator[list[torch.Tensor]]:
    """What is run for statistics."""
    for _ in range(16):
        yield [X]


def _note(found: Notes, made: AnyValue) -> None:
    """Note the layers of a network that MCT made, and its result."""
    found["layers"] = [
        f"{name}: {type(each).__name__}" for name, each in made.named_modules()
    ]
    found["state"] = dict(made.state_dict())
    found["result"] = made(X)


def main() -> None:
    """Quantise two networks after training, one in it; prune one."""
    for net in (Small, Functions):
        with case(f"after training, {net.__name__.lower()}") as found:
            made, _ = mct.ptq.pytorch_post_training_quantization(
                net().eval(), data
            )
            _note(found, made)
    with case("with gradients") as found:
        settings = mct.gptq.get_pytorch_gptq_config(2)
        made, _ = mct.gptq.pytorch_gradient_post_training_quantization(
            Small().eval(), data, gptq_config=settings
        )
        _note(found, made)
    with case("in training") as found:
        made, _ = mct.qat.pytorch_quantization_aware_training_init_experimental(
            Small().eval(), data
        )
        _note(found, made)
    with case("pruned") as found:
        most = mct.core.ResourceUtilization(weights_memory=80_000)
        made, _ = mct.pruning.pytorch_pruning_experimental(
            Wide().eval(), most, data
        )
        _note(found, made)
    with case("data made for it") as found:
        settings = mct.data_generation.get_pytorch_data_generation_config(2)
        images = mct.data_generation.pytorch_data_generation_experimental(
            Small().eval(), 2, 8, settings
        )
        found["images"] = images
