"""Break it, stage 05. Check your answer: `python -m stages break 05`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

Program = Callable[..., object] | nn.Module


def answer() -> tuple[Program, list[torch.Tensor]]:
    """Return a function and a list of inputs for which the generated code
    cannot be called as the function can.
    """
    raise NotImplementedError("stage 05: break_it")
