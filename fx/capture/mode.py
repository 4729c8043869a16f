"""Stage 08, reinplace: the dispatch mode, which sees each operator that runs.

While a `CaptureMode` is active, torch's dispatcher hands it every operator,
below autograd and functorch (`torch.vmap`, `torch.func.grad`).  The mode takes
composite operators apart, and has the capture run and record all others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NoReturn, TypeAlias

import torch
from torch import nn

from ..recording import frames
from ..torch_private.dispatch import (
    DispatchMode,
    dispatch_key,
    has_kernel_for,
    key_of_device,
)
from ..torch_private.fake_tensors import FakeTensor
from ..torch_private.overloads import HigherOrderOperator, OpOverload
from ..torch_private.pytree import pytree
from ..use_def.values import AnyValue, Args, Kwargs
from .capture import Capture

DecompositionTable: TypeAlias = Mapping[OpOverload, Callable[..., AnyValue]]
"""operator -> the function that runs, and is recorded, in its place."""

_PLAIN: Final = frozenset((torch.Tensor, nn.Parameter, FakeTensor))
"""Types of tensors that leave it to torch what an operator does to them."""


class CaptureMode(DispatchMode):
    """Has a capture record each operator that runs while it is active.

    Attributes:
        paused: whether to let operators pass, because another capture runs
            inside this one.
    """

    supports_higher_order_operators = True
    """Receive them too, in order to refuse them with an explanation."""

    def __init__(self, capture: Capture, table: DecompositionTable) -> None:
        """Make a mode.

        Args:
            capture: what records.
            table: what to decompose, and how.
        """
        super().__init__()
        self._capture = capture
        self._table = table
        self.paused = False

    def __torch_dispatch__(
        self,
        func: AnyValue,
        types: tuple[type, ...],
        args: Args = (),
        kwargs: Kwargs | None = None,
    ) -> AnyValue:
        """Decompose an operator, or run and record it."""
        kwargs = kwargs or {}
        if self.paused or func is torch.ops.prim.device.default:
            return func(*args, **kwargs)
        if not isinstance(func, OpOverload):
            _refuse(func)
        if not _PLAIN.issuperset(types) and self._is_foreign(args, kwargs):
            # Torch asks the subclass next, which calls plain operators.
            return NotImplemented
        if func in self._table:
            with self:
                result = self._table[func](*args, **kwargs)
            if result is not NotImplemented:
                return result
        if func.has_kernel_for_dispatch_key(_COMPOSITE):
            leaves = pytree.arg_tree_leaves(*args, **kwargs)
            if not _has_own_kernel(func, leaves):
                with self:
                    result = func.decompose(*args, **kwargs)
                if result is not NotImplemented:
                    return result
        return self._capture.run(func, args, kwargs)

    def _is_foreign(self, args: Args, kwargs: Kwargs) -> bool:
        """Whether an argument is a tensor subclass that no node has made."""
        return any(
            type(leaf) not in _PLAIN and not self._capture.knows(leaf)
            for leaf in pytree.arg_tree_leaves(*args, **kwargs)
            if isinstance(leaf, torch.Tensor)
        )


_COMPOSITE: Final = torch.DispatchKey.CompositeImplicitAutograd
"""Where operators have their definition in terms of other operators."""


def _has_own_kernel(func: AnyValue, leaves: list[AnyValue]) -> bool:
    """Whether eager PyTorch runs a kernel of the device, not the definition.

    The device is that of the first tensor among the arguments.
    """
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor):
            device = key_of_device(leaf.device.type)
            key = dispatch_key(device)
            return key is not None and has_kernel_for(func.name(), key)
    return False


def _refuse(func: HigherOrderOperator) -> NoReturn:
    """Raise the error for an operator that takes functions."""
    raise NotImplementedError(
        f"make_fx met torch.ops.higher_order.{func.__name__}, in\n"
        f"  {frames.where()}\n"
        "  It takes functions, and a graph of ATen operators has none. Use "
        "torch.where for a choice and a Python loop for a repetition, or "
        "capture the functions one by one."
    )
