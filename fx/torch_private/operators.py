"""Stage 02, use-def: where torch keeps what its operators mean.

Tables lead from `torch.add` to its schemas.  `overloads` has the operators
themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ..use_def.values import AnyValue
from .names import find_or

find_builtin: Final[Callable[[object], str | None]] = find_or(
    "torch.jit._builtins:_find_builtin",
    lambda function: None,
    without="functions such as torch.add have no schema: calls of them cannot "
    "be normalized, and their effects are unknown",
)
"""The operator that a function of torch calls, "aten::add" for torch.add."""

boolean_dispatched: Final[Mapping[object, AnyValue]] = find_or(
    "torch._jit_internal:boolean_dispatched",
    {},
    without="functional.max_pool2d and its like have no signature",
)
"""A function that is two, chosen by a flag -> both."""

has_kernel: Final[Callable[[str], bool]] = find_or(
    "torch._C:_dispatch_has_kernel",
    lambda full_name: True,
    without="operators that TorchScript alone has count as computing",
)
"""Whether an operator, "aten::add.Tensor", has any kernel."""
