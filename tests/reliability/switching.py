"""Calls of torch that change its state, made in a forward that is traced.

Which calls these are is found by looking: each public callable of some modules
is called with a few plain arguments in a process of its own, and what torch's
getters say is compared, before, after, and inside of a context manager.  Those
that change something are then called in a function that is traced.  The graph
does not make the call, so there has to be a warning.
"""

from __future__ import annotations

import os
import pickle
import random
import re
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any, Final, TypeAlias

import torch
from torch import autograd, backends
from torch.autograd import forward_ad, profiler
from torch.nn import attention
from torch.utils import _python_dispatch, flop_counter

import fx

from .part import Outcome, Part, Plant

AnyValue: TypeAlias = Any

MODULES: Final[tuple[ModuleType, ...]] = (
    *(torch, torch.amp, torch.random, torch.cuda, attention),
    *(autograd, autograd.graph, forward_ad, profiler, torch.profiler),
    *(backends.cuda, backends.cudnn, backends.mkldnn),
    *(flop_counter, _python_dispatch),
)

SKIPPED: Final = frozenset(
    "set_num_interop_threads init_num_threads compile save load wait fork "
    "import_ir_module import_ir_module_from_buffer parse_ir parse_schema "
    "export_memory_timeline kineto_available emit_itt emit_nvtx "
    "load_nvprof".split()
)
"""What ends the process, waits, or reads files."""

ARGUMENTS: Final[tuple[tuple[AnyValue, ...], ...]] = (
    (),
    (True,),
    (False,),
    (7,),
    (torch.float64,),
    (torch.bfloat16,),
    (torch.DoubleTensor,),
    ("high",),
    ("cpu",),
    ("warn",),
    ("name",),
    ("cpu", True),
    ("cpu", torch.float16),
    (torch.Generator().manual_seed(5).get_state(),),
    (lambda t: t, lambda t: t),
    ([attention.SDPBackend.MATH],),
)
"""What each callable is tried with, until a call changes something."""

Switch: TypeAlias = tuple[int, str, int]
"""The number of a module, a name in it, and the number of the arguments."""


SDP: Final = ("cudnn", "flash", "math", "mem_efficient")
"""The kernels for attention that can be switched."""


def state() -> tuple[object, ...]:
    """What torch says of its own state."""
    options = torch._tensor_str.PRINT_OPTS
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.get_default_dtype(),
        torch.get_default_device(),
        torch.initial_seed(),
        torch.get_rng_state().numpy().tobytes(),
        torch.is_anomaly_enabled(),
        torch.get_deterministic_debug_mode(),
        torch.get_float32_matmul_precision(),
        torch.get_num_threads(),
        torch.is_warn_always_enabled(),
        torch.is_autocast_cache_enabled(),
        *[torch.is_autocast_enabled(kind) for kind in ("cpu", "cuda")],
        *[torch.get_autocast_dtype(kind) for kind in ("cpu", "cuda")],
        *[getattr(backends.cuda, f"{kind}_sdp_enabled")() for kind in SDP],
        backends.cudnn.enabled,
        backends.cudnn.benchmark,
        backends.mkldnn.enabled,
        repr(vars(options)),
        forward_ad._current_level,
        torch._C._len_torch_function_stack(),
        torch._C._len_torch_dispatch_stack(),
        torch._C._autograd._profiler_enabled(),
        torch._C._autograd._top_saved_tensors_default_hooks(True) is None,
        torch._C._is_multithreading_enabled(),
    )


def changes(
    function: Callable[..., AnyValue], args: tuple[AnyValue, ...]
) -> bool:
    """Whether a call, or a block of what it returns, changes the state.

    A function that returns a tensor has drawn it: that is another question.
    """
    before = state()
    given = function(*args)
    if state() != before:
        return not isinstance(given, torch.Tensor)
    if not hasattr(type(given), "__enter__"):
        return False
    with given:
        return state() != before


def callables() -> Iterator[tuple[int, str]]:
    """The public callables that are looked at.

    Operators, which have a schema, and getters are left out.
    """
    seen: set[int] = set()
    for number, module in enumerate(MODULES):
        for name, value in sorted(vars(module).items()):
            if name[0] == "_" or name in SKIPPED or id(value) in seen:
                continue
            of_torch = str(getattr(value, "__module__", "")).startswith("torch")
            if callable(value) and of_torch and not _is_pure(name, value):
                seen.add(id(value))
                yield number, name


def _is_pure(name: str, value: object) -> bool:
    """Whether a callable is known to leave torch as it is."""
    if name.startswith(("get_", "is_")):
        return True
    if isinstance(value, type):
        return issubclass(value, Exception | torch.Tensor)
    find: AnyValue = torch.jit._builtins._find_builtin
    return find(value) is not None


LIKELY: Final = re.compile(
    "autocast|device|enable|flags|hooks|kernel|level|[mM]ode|mutation|profile|"
    "save_on|seed|set_|use_"
)
"""What the names of such calls often have: these are looked at first."""


def found_by(number: int, name: str) -> list[Switch]:
    """The first arguments with which a callable changes the state."""
    function = getattr(MODULES[number], name)
    for place, args in enumerate(ARGUMENTS):
        try:
            if changes(function, args):
                return [(number, name, place)]
        except Exception:  # these arguments are not for it
            continue
    return []


def in_a_child(work: Callable[[], AnyValue]) -> AnyValue:
    """What a function gives in a process of its own; None if that dies."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        warnings.simplefilter("ignore")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.write(write, pickle.dumps(work()))
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    return pickle.loads(data) if data else None


def noticed(lib: AnyValue, switch: Switch, imported: bool) -> bool:
    """Whether a trace warns of a call, or refuses it.

    Args:
        lib: fx or torch.fx.
        switch: the call.
        imported: the forward has the function among its own globals.
    """
    number, name, place = switch
    body = f"{name if imported else 'module.' + name}(*args)"
    lines = ["def forward(x):", f"    with_it = {body}"]
    lines += ["    if hasattr(type(with_it), '__enter__'):"]
    lines += ["        with with_it:", "            return x * 2"]
    lines += ["    return x * 2"]
    module = MODULES[number]
    names: dict[str, AnyValue] = {"module": module, "args": ARGUMENTS[place]}
    names[name] = getattr(module, name)
    names["__name__"] = "program"
    exec("\n".join(lines), names)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            lib.symbolic_trace(names["forward"])
        except Exception:
            return True
    return any(one.category is UserWarning for one in caught)


def tried(number: int, name: str) -> list[tuple[str, bool, bool]]:
    """Each way to call what changes the state, and who notices: fx, torch.fx.

    For a callable that changes nothing there is none.
    """
    found: list[tuple[str, bool, bool]] = []
    for switch in in_a_child(lambda: found_by(number, name)) or []:
        said = f"{MODULES[number].__name__}.{name}{ARGUMENTS[switch[2]]}"
        for way, imported in (("by its module", False), ("imported", True)):
            ours, theirs = noticed(fx, switch, imported), True
            if imported:
                theirs = noticed(torch.fx, switch, imported)
            found.append((f"{said}, {way}", ours, theirs))
    return found


def run(seed: int, cases: int) -> Iterator[Outcome]:
    """Look at callables, the likely ones first."""
    torch.set_num_threads(1)
    found = [*callables()]
    random.Random(seed).shuffle(found)
    found.sort(key=lambda entry: not LIKELY.search(entry[1]))
    for number, name in found[:cases]:
        rows = in_a_child(partial(tried, number, name)) or []
        for case, ours, theirs in rows:
            yield Outcome(
                case,
                "" if ours else "no word of it",
                "" if theirs else "no word of it",
            )
        if not rows:
            yield Outcome(f"{MODULES[number].__name__}.{name}: no switch")


PART = Part(
    "switching",
    "calls that change torch's state, in a forward: a warning, or an error",
    run,
    share=30,
    long=2_000,
    plants=(
        Plant(
            "fx/extra/watching/switches.py",
            '    (DispatchMode, "__enter__"),\n',
            "",
            "a dispatch mode in forward is lost",
        ),
        Plant(
            "fx/extra/watching/switches.py",
            '    (attention, "sdpa_kernel"),\n',
            "",
            "a context manager is forgotten",
        ),
        Plant(
            "fx/extra/watching/watching.py",
            "TRACES.patch(namespace, switches, _state_switch)",
            "pass",
            "functions that the program has imported are not replaced",
        ),
        Plant(
            "fx/extra/watching/switches.py",
            '    (forward_ad.dual_level, "__enter__"),\n',
            "",
            "a class of a context manager is forgotten",
        ),
    ),
)
