"""Break it, stage 03. Check your answer: `python -m stages break 03`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

Program = Callable[..., object] | nn.Module


def answer() -> tuple[Program, list[torch.Tensor]]:
    """Return a function and a list of inputs for which the traced function
    gives another result.
    """
    raise NotImplementedError("stage 03: break_it")
