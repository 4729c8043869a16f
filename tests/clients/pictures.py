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

import copy
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from typing import Final

import timm
import torch
from torch import nn
from torchvision import __version__ as torchvision_version
from torchvision import models

import fx
from fx.use_def.values import AnyValue
from tests.clients.judging import Row, called, line, rows, timed
from tests.clients.results import note_models

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

HEADS: Final = (
    *("eval: example", "eval: other", "eval: batch of one"),
    *("train: example", "train: other", "train: batch of one"),
    *("torch.export", "its CPU seconds"),
)


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


def picture_size(name: str, model: nn.Module) -> int:
    """The size of the pictures that a model takes."""
    config = getattr(model, "pretrained_cfg", None) or {}
    if name.startswith("timm/"):
        return int(config.get("input_size", (3, 224, 224))[-1])
    return 299 if "inception" in name else 224


def runs(model: nn.Module, x: torch.Tensor) -> bool:
    """Whether a model runs on an input."""
    try:
        model(x)
    except Exception:
        return False
    return True


def inputs(name: str, model: nn.Module) -> list[torch.Tensor]:
    """The example, another batch, and a batch of one; small if that runs."""
    most = picture_size(name, model)
    for size in (*(each for each in (64, 96) if each < most), most):
        if runs(model, torch.randn(2, 3, size, size)):
            break
    else:
        raise ValueError("the model runs on no picture")
    other = torch.randn(3, 3, size + 32, size + 32)
    if not runs(model, other):
        other = torch.randn(3, 3, size, size)
    return [
        torch.randn(2, 3, size, size),
        other,
        torch.randn(1, 3, size, size),
    ]


def judged(name: str) -> Row:
    """Build, trace and call a model."""
    torch.manual_seed(0)
    try:
        model = built(name).eval()
        given = inputs(name, model)
    except Exception as error:
        return Row(name, (), 0.0, line(error))
    calls: list[str] = []
    reasons: list[str] = []
    seconds = 0.0
    for training in (False, True):
        model.train(training)
        took, found = timed(lambda: fx.trace(model, given[0]))
        if isinstance(found, Exception):
            calls += ["not traced", "-", "-"]
            reasons.append(line(found))
            continue
        seconds = seconds or took
        for x in given:
            call = called(*copy.deepcopy((found, model)), x)
            calls.append(call[0])
            reasons.append(call[1])
    model.eval()
    took, found = timed(
        lambda: torch.export.export(model, (given[0],), strict=False)
    )
    taken = "no" if isinstance(found, Exception) else "yes"
    why = next(filter(None, reasons), "")
    return Row(name, tuple(calls), seconds, why, (taken, f"{took:.1f}"))


def main(chosen: list[str]) -> int:
    """Judge models and say what came out; 1 if one is wrong."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    warm = nn.Linear(2, 2), torch.ones(1, 2)  # what each of them imports
    fx.trace(*warm)
    torch.export.export(warm[0], warm[1:], strict=False)
    found = []
    for row in rows(chosen or names(), judged):
        found.append(row)
        print(*row, sep="   ", flush=True)
    if not chosen:
        versions = (
            f"torchvision {torchvision_version}, timm {timm.__version__}, "
            f"torch {torch.__version__}"
        )
        note_models("pictures", HEADS, found, versions, {})
    return int(any("WRONG" in row.calls for row in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
