"""Models of torchvision and timm, traced by fx.trace.

    python -m tests.clients.pictures [MODEL …]

It needs an environment with both; `make families` makes one.  Of torchvision
these are its models for classifying, segmenting and comparing pictures, up to a
number of parameters, and the smallest of each file in any case; of timm the
smallest of each file, among some whose names say that they are small.  Weights
are random.  Each model is traced with eval() and with train(), and called with
the example, with another batch size (and another size of pictures, if the model
takes that), and with a batch of one.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from typing import Final

import timm
import torch
from torch import nn
from torchvision import models

from fx.use_def.values import AnyValue
from tests.clients.judging import Given, Table, timed
from tests.clients.results import run_models

MOST: Final = 10_000_000
"""How many parameters a model of torchvision may have."""

OF_TORCHVISION: Final = re.compile(
    r"torchvision\.models\.(segmentation\.)?[a-z0-9]+$"
)
"""The files whose models take a batch of pictures and nothing else."""

SMALL: Final = re.compile(
    r"test|tiny|nano|small|mini|atto|femto|pico|micro|xx?s|_s|b0|18|_0|lite"
)
"""Parts of the names of small models."""

CANDIDATES: Final = 4
"""How many models of a file of timm are built to find the smallest."""


def built(name: str) -> nn.Module:
    """The model of a name such as `timm/vit_tiny_patch16_224`."""
    library, _, model = name.partition("/")
    if library == "torchvision":
        options: AnyValue = {"weights": None}
        if model.startswith(("deeplab", "fcn", "lraspp")):
            options["weights_backbone"] = None
        if model in ("googlenet", "inception_v3"):
            options["init_weights"] = False  # which takes half a minute
        made: nn.Module = models.get_model(model, **options)
        return made
    made = timm.create_model(model, pretrained=False)
    return made


def size_of(name: str) -> float:
    """How many parameters a model has; infinite if it cannot be built."""
    try:
        with torch.device("meta"):
            return sum(each.numel() for each in built(name).parameters())
    except Exception:
        return float("inf")


def smallest(names: Iterable[str]) -> str:
    """The smallest of some models."""
    return min(names, key=size_of)


def names() -> Iterator[str]:
    """The models that are tried."""
    files: dict[str, list[str]] = {}
    for name in models.list_models():
        file = models.get_model_builder(name).__module__
        if OF_TORCHVISION.match(file):
            files.setdefault(file, []).append(f"torchvision/{name}")
    for found in files.values():
        first = smallest(found)
        yield from (n for n in found if n == first or size_of(n) <= MOST)
    for file in timm.list_modules():
        found = timm.list_models(module=file)
        ranked = sorted(found, key=lambda n: (not SMALL.search(n), len(n), n))
        if ranked:
            yield smallest(f"timm/{name}" for name in ranked[:CANDIDATES])


def runs(model: nn.Module, x: torch.Tensor) -> bool:
    """Whether a model runs on an input."""
    return not isinstance(timed(lambda: model(x))[1], Exception)


def build(name: str) -> tuple[nn.Module, list[Given]]:
    """A model, and pictures, small if it runs on such, of each call."""
    model = built(name).eval()
    usual: AnyValue = 299 if name == "torchvision/inception_v3" else 224
    config = getattr(model, "pretrained_cfg", None) or {}
    most = int(config.get("input_size", (usual,))[-1])
    for size in (*(each for each in (64, 96) if each < most), most):
        if runs(model, torch.randn(2, 3, size, size)):
            break
    else:
        raise ValueError("the model runs on no picture")
    other = torch.randn(3, 3, size + 32, size + 32)
    if not runs(model, other):
        other = torch.randn(3, 3, size, size)
    example, one = (torch.randn(n, 3, size, size) for n in (2, 1))
    return model, [((x,), {}) for x in (example, other, one)]


TABLE: Final = Table(
    "pictures",
    [
        f"{mode}: {call}"
        for mode in ("eval", "train")
        for call in ("example", "other", "batch of one")
    ],
    build,
    ("torchvision", "timm", "torch"),
    free=False,
    modes=(False, True),
)

if __name__ == "__main__":
    sys.exit(run_models(TABLE, names(), sys.argv[1:]))
