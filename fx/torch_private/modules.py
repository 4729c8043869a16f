"""Extra: what modules and functions of torch do besides computing a value.

Of private classes of modules, the public subclasses would be the next best, but
a program may have derived a class from the private one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Final

import torch
from torch import nn

from ..use_def.values import AnyValue
from .names import find, find_or

if TYPE_CHECKING:
    from torch._library.custom_ops import CustomOpDef as CustomOpDef
else:
    CustomOpDef = find(
        "torch._library.custom_ops:CustomOpDef",
        needed_for="the effects of what torch.library.custom_op defines",
    )

NormBase: Final[AnyValue] = find_or(
    "torch.nn.modules.batchnorm:_NormBase",
    (
        *(nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm),
        *(nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d),
    ),
    without="norms that a program derives from it alone have no known effect",
)
"""The class, or classes, of modules with running statistics."""

DropoutNd: Final[AnyValue] = find_or(
    "torch.nn.modules.dropout:_DropoutNd",
    (
        *(nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d),
        *(nn.AlphaDropout, nn.FeatureAlphaDropout),
    ),
    without="dropouts that a program derives from it alone have no known "
    "effect",
)
"""The class, or classes, of dropouts."""

SpectralNorm: Final[AnyValue] = find(
    "torch.nn.utils.parametrizations:_SpectralNorm",
    needed_for="the effect of spectral norms in training",
)
"""The parametrization that updates its vectors while it is in training."""

HOOKS: Final = (
    "_forward_pre_hooks",
    "_forward_hooks",
    "_backward_pre_hooks",
    "_backward_hooks",
)
"""Where a module keeps functions that run when it is called."""

GLOBAL_HOOKS: Final[tuple[Mapping[int, AnyValue], ...]] = tuple(
    find_or(
        f"torch.nn.modules.module:_global{kind}",
        {},
        without="a module counts as torch's although hooks for all modules "
        "run with it",
    )
    for kind in HOOKS
)
"""The functions that run when any module is called."""


def beside_forward(module: nn.Module) -> list[str]:
    """What a call of a module runs besides the forward of its class.

    That is hooks, as Python names them, and a forward set on the instance.
    """
    attributes = vars(module)
    own = ["a forward of its own"] if "forward" in attributes else []
    return own + [hooks[1:] for hooks in HOOKS if attributes.get(hooks)]


def has_backward_hook(module: nn.Module) -> bool:
    """Whether functions run when gradients go through a module."""
    return any(vars(module).get(name) for name in HOOKS[2:])


# -- functions ---------------------------------------------------------------

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

preserving_versions: Final[
    Callable[[tuple[torch.Tensor, ...]], AbstractContextManager[AnyValue]]
] = find_or(
    "torch.autograd:_unsafe_preserve_version_counter",
    lambda tensors: nullcontext(),
    without="what fx.trace tries counts as a write into buffers",
)
"""A block whose writes into tensors are not counted, as it undoes them."""

without_modes: Final[Callable[[], AbstractContextManager[AnyValue]]] = find_or(
    "torch.utils._python_dispatch:_disable_current_modes",
    nullcontext,
    without="constants that are folded in a fake mode have no data",
)
"""A block in which the dispatch modes are not in force."""

SUPPORTED_NODES: Final[Mapping[AnyValue, AnyValue]] = find_or(
    "torch.utils._pytree:SUPPORTED_NODES",
    {},
    without="a trace on an example refuses objects of registered classes",
)
"""Class that is registered → the functions that were given for it."""
