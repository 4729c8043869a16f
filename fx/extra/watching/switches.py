"""Extra: calls that change torch's own state.

    torch.manual_seed(3)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        return x * x

No proxy is an argument of these calls, so they run while tracing, and the graph
does not make them: its dropout draws other numbers, and its product saves its
operands as ever.  While a trace runs they are replaced by functions that warn.
Gradients, inference mode and autocast are different: they change what *other*
calls do, so `modes` looks at what was recorded in them.

torch does not say which of its functions change its state, so the lists below
are made by search: tests/reliability/switching.py calls torch's public
callables, compares what torch says of itself before and after, and fails if a
trace does not warn of one that makes a difference.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Final

import torch
from torch import autograd, backends
from torch.autograd import forward_ad, profiler
from torch.nn import attention
from torch.overrides import TorchFunctionMode
from torch.utils import checkpoint

from ...proxy import Proxy
from ...recording import frames
from ...torch_private.dispatch import DispatchMode
from ...torch_private.watching import DeviceContext
from ...use_def.values import AnyValue

_FUNCTIONS: Final[tuple[tuple[ModuleType, str], ...]] = (
    (
        torch,
        "manual_seed seed set_rng_state set_anomaly_enabled "
        "set_autocast_cache_enabled set_autocast_cpu_dtype "
        "set_autocast_dtype set_autocast_gpu_dtype set_default_device "
        "set_default_dtype set_default_tensor_type "
        "set_deterministic_debug_mode "
        "set_float32_matmul_precision set_flush_denormal set_num_threads "
        "set_printoptions set_warn_always use_deterministic_algorithms",
    ),
    (torch.random, "fork_rng manual_seed seed set_rng_state"),
    (
        torch.cuda,
        "manual_seed manual_seed_all seed seed_all set_device set_rng_state "
        "set_rng_state_all set_stream",
    ),
    (
        autograd.graph,
        "allow_mutation_on_saved_tensors disable_saved_tensors_hooks",
    ),
    (forward_ad, "enter_dual_level exit_dual_level"),
    (attention, "sdpa_kernel"),
    (
        backends.cuda,
        "enable_cudnn_sdp enable_flash_sdp enable_math_sdp "
        "enable_mem_efficient_sdp preferred_blas_library "
        "preferred_linalg_library sdp_kernel",
    ),
    (backends.cudnn, "flags set_flags"),
    (backends.mkldnn, "flags set_flags"),
    (checkpoint, "checkpoint checkpoint_sequential"),
)
"""Modules, and their functions that change state or give a context manager
that does."""

_CLASSES: Final[tuple[tuple[type, str], ...]] = (
    (autograd.detect_anomaly, "__enter__"),
    (autograd.graph.saved_tensors_hooks, "__enter__"),
    (autograd.set_detect_anomaly, "__init__"),
    (autograd.set_multithreading_enabled, "__init__"),
    (forward_ad.dual_level, "__enter__"),
    (profiler.profile, "__enter__"),
    (profiler.record_function, "__enter__"),
    (torch.profiler.profile, "__enter__"),
    (DispatchMode, "__enter__"),
    (TorchFunctionMode, "__enter__"),
    (DeviceContext, "__init__"),
)
"""Context managers, and the method that changes state."""


def _existing() -> Iterator[tuple[AnyValue, list[str]]]:
    """The places of all of them that the installed torch has."""
    for module, names in _FUNCTIONS:
        namespace = vars(module)
        yield namespace, [name for name in names.split() if name in namespace]
    for kind, name in _CLASSES:
        yield kind, [name] if name in vars(kind) else []


PLACES: Final = (*_existing(),)
"""Where Python code looks them up: a class or the globals of a module, and the
names in it."""

SWITCHES: Final[frozenset[int]] = frozenset(
    id(place[name])
    for place, names in PLACES
    if isinstance(place, dict)
    for name in names
)
"""The functions among them, by identity: programs import them by name."""


_DRAWS: Final = {
    "torch": "normal rand randint randn randperm",
    "random": "choice gauss randint random randrange sample shuffle uniform",
    "numpy.random": "choice normal permutation rand randint randn uniform",
}
"""Modules, and their functions that draw random numbers."""


def places_of_draws() -> Iterator[tuple[AnyValue, list[str]]]:
    """The globals of those that are loaded, and the names in them."""
    for module, names in _DRAWS.items():
        if module in sys.modules:
            yield vars(sys.modules[module]), names.split()


_THROUGH: Final = (
    *(f"{frames.OURS[0]}{name}." for name in ("extra", "tracing")),
    "torch.utils._contextlib.",
    "torch.utils.flop_counter.",
)
"""Modules between the user's code and ours that do not count."""

_NAMES: Final = {"DeviceContext": "a device, as a context manager,"}
"""What users write for a class that they do not."""


def warn_of_switch(function: Callable[..., AnyValue]) -> None:
    """Warn of a call that changes torch's state.

    What torch calls itself is left alone: a checkpoint sets hooks.
    """
    if _is_called_by_user():
        name = function.__qualname__
        name = re.sub(r"\.__(init|enter)__", "", name)
        frames.warn(
            f"{_NAMES.get(name, name)} is called while tracing, and the graph "
            "does not call it when it runs, so that what it changes in torch "
            "is not changed then. Call it around the graph, or move the code "
            "that needs it into a leaf module or a function marked with fx.wrap"
        )


def warn_of_draw(function: Callable[..., AnyValue], value: object) -> None:
    """Warn of random numbers that the graph has as constants."""
    if not isinstance(value, Proxy) and _is_called_by_user():
        frames.warn(
            f"{function.__name__} draws random numbers while tracing, and the "
            "graph has them as constants, the same in each call: draw what has "
            "the shape of an input, as torch.rand_like(x) does, or put the "
            "call into a function marked with fx.wrap"
        )


def _is_called_by_user() -> bool:
    """Whether the user's code calls, with nothing of torch in between.

    A decorator that torch makes of a context manager does not count.
    """
    stack = traceback.walk_stack(sys._getframe(1))
    names = (f"{frame.f_globals.get('__name__')}." for frame, _ in stack)
    outside = (name for name in names if not name.startswith(_THROUGH))
    return not next(outside, "").startswith(frames.OURS)
