"""Break it, stage 06. Check your answer: `python -m stages break 06`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

Program = Callable[..., object] | nn.Module


def answer() -> tuple[Program, list[torch.Tensor]]:
    """Return a function and a list of inputs for which the interpreter fails.
    One operation is not enough.
    """
    raise NotImplementedError("stage 06: break_it")
