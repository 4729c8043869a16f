"""Extra: where torch has what is replaced to watch a trace.

If a torch lacks one of these, a trace records the same and warns of less.
"""

from __future__ import annotations

from typing import Final

import torch
import torch.backends.cuda
import torch.backends.mha

from ..use_def.values import Value
from .names import find
from .tracing import place

GRADIENTS: Final = place(
    "torch._C",
    "_set_grad_enabled",
    without="a trace does not warn of torch.no_grad() in forward",
)
"""What torch's Python code switches gradients with."""

MODES: Final[tuple[Value, ...]] = (
    torch.backends.mha,
    torch.backends.cuda,
    find("torch._C", needed_for="questions for modes of torch in fx.trace"),
    torch,
)
"""Modules with functions that ask for a mode; the last knows a name best."""

DeviceContext: Final[type] = find(
    "torch.utils._device:DeviceContext",
    needed_for="a warning of `with torch.device(…)` in forward",
)
"""What `with torch.device("meta"):` makes; torch calls nothing else of it."""

DispatchMode: Final[type] = find(
    "torch.utils._python_dispatch:TorchDispatchMode",
    needed_for="a warning of a dispatch mode in forward",
)
"""The class of modes that see operators, such as a counter of them."""
