"""Break it, stage 04. Check your answer: `python -m stages break 04`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

Program = Callable[..., object] | nn.Module


def answer() -> tuple[Program, list[torch.Tensor]]:
    """Return a module and a list of inputs for which the traced module gives
    another result.
    """
    raise NotImplementedError("stage 04: break_it")
