"""Stage 08, reinplace: torch's dispatcher, and modes that watch it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Final

from ..use_def.values import AnyValue
from .names import find

if TYPE_CHECKING:

    class DispatchMode(nullcontext[None]):
        """A mode of torch, as mypy can take it: torch's have no annotations."""

else:
    DispatchMode = find(
        "torch.utils._python_dispatch:TorchDispatchMode",
        needed_for="make_fx",
    )

active_modes: Final[Callable[[], list[AnyValue]]] = find(
    "torch.utils._python_dispatch:_get_current_dispatch_mode_stack",
    needed_for="make_fx",
)
"""The active dispatch modes, the outermost first."""

without_dispatch: Final[Callable[[], AbstractContextManager[AnyValue]]] = find(
    "torch._C:_DisableTorchDispatch",
    needed_for="make_fx",
)
"""A block in which no mode sees the operators."""

key_of_device: Final[Callable[[str], str]] = find(
    "torch._C:_dispatch_key_for_device",
    needed_for="make_fx",
)
"""The name of a device's dispatch key, "CPU" for "cpu"."""

dispatch_key: Final[Callable[[str], AnyValue]] = find(
    "torch._C:_parse_dispatch_key",
    needed_for="make_fx",
)
"""The dispatch key of a name; None if there is none."""

has_kernel_for: Final[Callable[[str, AnyValue], bool]] = find(
    "torch._C:_dispatch_has_kernel_for_dispatch_key",
    needed_for="make_fx",
)
"""Whether an operator, by its name, has a kernel at a dispatch key."""
