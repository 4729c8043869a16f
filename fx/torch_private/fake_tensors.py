"""Stage 02, use-def: tensors with a shape and a dtype, and no data.

A fake tensor answers questions about its size, strides and device, and calls
with it compute those of the result only.  Torch has had them for years and
still gives them no public name.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Final

import torch

from ..use_def.values import AnyValue
from .names import find, find_or

if TYPE_CHECKING:
    from torch._subclasses.fake_tensor import (
        DynamicOutputShapeException as DynamicOutputShapeException,
    )
    from torch._subclasses.fake_tensor import FakeCopyMode as FakeCopyMode
    from torch._subclasses.fake_tensor import FakeTensor as FakeTensor
    from torch._subclasses.fake_tensor import FakeTensorMode as FakeTensorMode
else:
    FakeTensor = find(
        "torch._subclasses.fake_tensor:FakeTensor",
        needed_for="tensors without data",
    )
    FakeTensorMode = find(
        "torch._subclasses.fake_tensor:FakeTensorMode",
        needed_for="running a graph without data",
    )
    FakeCopyMode = find(
        "torch._subclasses.fake_tensor:FakeCopyMode",
        needed_for="ShapeProp with a fake mode",
    )
    DynamicOutputShapeException = find(
        "torch._subclasses.fake_tensor:DynamicOutputShapeException",
        needed_for="make_fx of operators whose result has an unknown size",
    )

detached: Final[Callable[[FakeTensorMode, FakeTensor], FakeTensor]] = find(
    "torch._subclasses.fake_impls:fast_detach",
    needed_for="make_fx without data",
)
"""A fake tensor of the same mode that does not require gradients."""

unset_fake_temporarily: Final[
    Callable[[], AbstractContextManager[AnyValue]]
] = find_or(
    "torch._subclasses.fake_tensor:unset_fake_temporarily",
    nullcontext,
    without="constants are computed without data in a fake mode",
)
"""A block in which calls compute with data again."""

detect_fake_mode: Final[Callable[..., FakeTensorMode | None]] = find(
    "torch._guards:detect_fake_mode", needed_for="runs without data"
)
"""The active fake mode, or that of what is given; None without one."""

python_dispatcher: Final[Callable[[], AbstractContextManager[AnyValue]]] = (
    find_or(
        "torch._dispatch.python:enable_python_dispatcher",
        nullcontext,
        without="ShapeProp of a fake mode takes composites apart in C++",
    )
)

is_contiguous: Final[Callable[..., bool]] = find_or(
    "torch._prims_common:is_contiguous_for_memory_format",
    torch.Tensor.is_contiguous,
    without="ShapeProp asks the tensor itself",
)
"""Whether a tensor is contiguous in a `memory_format`."""


def is_fake(value: object) -> bool:
    """Whether it is a fake tensor."""
    return isinstance(value, FakeTensor)
