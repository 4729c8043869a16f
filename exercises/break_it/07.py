"""Break it, stage 07. Check your answer: `python -m stages break 07`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

Program = Callable[..., object] | nn.Module


def answer() -> tuple[Program, Program, Program, list[torch.Tensor]]:
    """Return a function, a pattern, a replacement that computes the same, and
    a list of inputs, so that the rewritten function no longer works.
    """
    raise NotImplementedError("stage 07: break_it")
