"""torchvision, of whatever torch it was built with."""

from __future__ import annotations

import contextlib
from importlib import import_module
from types import ModuleType

import torch

__all__ = ["declare_operators", "models"]


def declare_operators() -> None:
    """Let torchvision be imported, though its operators are not loaded.

    They are not where it was built for another torch than this; its models
    need only that they are declared.
    """
    for name in ("nms", "qnms"):
        with contextlib.suppress(RuntimeError):
            torch.library.define(
                f"torchvision::{name}",
                "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
            )


def models() -> ModuleType:
    """The module `torchvision.models`."""
    declare_operators()
    return import_module("torchvision.models")
