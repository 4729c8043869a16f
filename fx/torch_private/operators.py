"""Stage 02, use-def: where torch keeps what its operators mean.

Tables lead from `torch.add` to its schemas, and registries say which effects a
library has declared.  `overloads` has the operators themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Final

import torch

from ..use_def.values import AnyValue
from .names import find, find_or

if TYPE_CHECKING:
    from torch._library.custom_ops import CustomOpDef as CustomOpDef
else:
    CustomOpDef = find(
        "torch._library.custom_ops:CustomOpDef",
        needed_for="the effects of what torch.library.custom_op defines",
    )

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

declared_effect: Final[Callable[[str], AnyValue]] = find_or(
    "torch._library.simple_registry:singleton.find",
    lambda full_name: None,
    without="effects that libraries declare for their operators are unknown",
)
"""What is registered for an operator of a library, with `effect` from 2.10."""

INFERENCE_MODE: Final[tuple[Callable[..., AnyValue], ...]] = tuple(
    find_or(
        f"torch.autograd.grad_mode:{name}",
        torch.set_grad_enabled,
        without="calls that enter or leave inference mode may be removed as "
        "dead",
    )
    for name in ("_enter_inference_mode", "_exit_inference_mode")
)
"""What an exported graph switches inference mode with.  torch.fx registers
both as having an effect, since 2.15."""

NESTING_LEVELS: Final[tuple[ModuleType | SimpleNamespace, ...]] = tuple(
    find_or(
        module,
        SimpleNamespace(),
        without="calls that enter or leave a level of torch.func may be "
        "removed as dead",
    )
    for module in (
        "torch._functorch.predispatch",
        "torch._C",
        "torch._C._functorch",
    )
)
"""Modules with functions that enter or leave a level of vmap, grad or jvp."""

NN: Final[ModuleType | SimpleNamespace] = find_or(
    "torch._C._nn",
    SimpleNamespace(),
    without="a saved graph may not call functions such as gelu",
)
"""The functions that torch.nn.functional has from C++."""


switch_gradients: Final[Callable[[bool], None]] = find_or(
    "torch._C:_set_grad_enabled",
    torch.set_grad_enabled,
    without="a saved graph may not switch gradients",
)
enter_autocast: Final[Callable[..., AnyValue]] = find(
    "torch.amp.autocast_mode:_enter_autocast",
    needed_for="saved graphs that switch autocast on",
)
exit_autocast: Final[Callable[..., AnyValue]] = find(
    "torch.amp.autocast_mode:_exit_autocast",
    needed_for="saved graphs that switch autocast off",
)
