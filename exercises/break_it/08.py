"""Break it, stage 08. Check your answer: `python -m stages break 08`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

Program = Callable[..., object] | nn.Module


def answer() -> tuple[Program, list[torch.Tensor]]:
    """Return a function of ATen operators and a list of inputs for which the
    result changes. Operators are written like `torch.ops.aten.add.Tensor(x,
    y)`.
    """
    raise NotImplementedError("stage 08: break_it")
