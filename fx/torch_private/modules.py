"""Extra: what torch.nn's modules share under private names.

The public subclasses would be the next best, but a program may have derived a
class from the private one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from torch import nn

from ..use_def.values import AnyValue
from .names import find, find_or

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
