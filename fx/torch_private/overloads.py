"""Stage 02, use-def: torch's operators, and what each says of itself.

`torch.ops.aten.add` is an operator packet, `torch.ops.aten.add.Tensor` one of
its overloads, and `torch.cond` calls a higher-order operator, which takes
functions.  None of the three classes has a public name, but the first two are
the classes of public objects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import torch

from ..use_def.values import AnyValue
from .names import find, find_or

if TYPE_CHECKING:
    from torch._ops import HigherOrderOperator as HigherOrderOperator
    from torch._ops import OpOverload as OpOverload
    from torch._ops import OpOverloadPacket as OpOverloadPacket
else:
    OpOverload = type(torch.ops.aten.add.Tensor)
    OpOverloadPacket = type(torch.ops.aten.add)
    HigherOrderOperator = find(
        "torch._ops:HigherOrderOperator",
        needed_for="operators that take functions, as torch.cond does",
    )

called_for_effect: Final[set[Callable[..., AnyValue]]] = find_or(
    "torch.fx.node:_side_effectful_functions",
    set(),
    without="what is registered with torch.fx as having an effect may be "
    "removed as dead",
)
"""The functions that are registered with torch.fx as having an effect."""


def schema_writes(target: object) -> bool:
    """Whether an operator's schema says that it writes into an argument."""
    schema = getattr(target, "_schema", None)
    return bool(getattr(schema, "is_mutable", False))


def draws_numbers(target: object) -> bool:
    """Whether an operator's tags say that it draws random numbers."""
    tags = target.tags if isinstance(target, OpOverload) else ()
    return torch.Tag.nondeterministic_seeded in tags


assert_: Final[Callable[[AnyValue, str], None]] = find(
    "torch:_assert", needed_for="a trace with concrete_args"
)
"""Raises if a condition does not hold; traces record a call of it."""

dtype_abbreviations: Final[Mapping[torch.dtype, str]] = find_or(
    "torch.utils._dtype_abbrs:dtype_abbrs",
    {},
    without="printed graphs write dtypes in full",
)
"""torch.float32 -> "f32"."""
