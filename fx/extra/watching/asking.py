"""Extra: questions that a proxy cannot answer as a tensor would.

`isinstance(x, torch.Tensor)` looks at the class of x, and `callable(x)` at
what its class has.  A proxy is not asked itself there, so these builtins are
replaced while a trace runs: they give the answer that torch.fx gives, and warn
if a tensor would give another one, because the trace would follow a branch that
the program never takes.  `x in {1, 2}` asks for a hash, which depends on the
value.

`type(x)`, `x is y` and `match x:` cannot be replaced, since they are a class,
an operator and a statement. Nor can `torch.is_tensor`: code that imports it
while a trace runs, as torch.compile does, would keep the replacement.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Final, get_args

import torch

from ...proxy import Proxy, TracerBase
from ...recording import frames
from ...torch_private.modules import without_modes
from ...use_def.values import AnyValue, Args

_OF_PROXIES: Final = ("node", "tracer")
"""What each proxy has, and no tensor."""


def _a_tensor() -> torch.Tensor:
    """One that no mode has seen, though this file is imported in any mode."""
    with without_modes():
        return torch.empty(0)


_A_TENSOR: Final = _a_tensor()


def warn_unless_a_tensor_agrees(
    function: Callable[..., AnyValue], args: Args, result: AnyValue
) -> None:
    """Warn if a question about a proxy has another answer for a tensor.

    Args:
        function: one of QUESTIONS.
        args: what it was called with.
        result: its answer.
    """
    asked = args[0] if args else None
    if not isinstance(asked, Proxy) or isinstance(result, Proxy):
        return
    if result is function(_A_TENSOR, *args[1:]) or _is_of_proxies(args[1:]):
        return
    frame = frames.user_frame()
    if frame is not None and _is_method_of(frame, Proxy, TracerBase):
        return  # it is not part of the program that is traced
    frames.warn(
        f"{function.__name__} of {asked} is {result}, because it is a proxy; "
        "of a tensor it is not, and what follows is decided while tracing. "
        "Ask something else, or move the code into a function marked with "
        "fx.wrap"
    )


def _is_of_proxies(asked_for: AnyValue) -> bool:
    """Whether the code deliberately tests for a proxy.

    That is `isinstance(x, (int, Proxy))`, or `hasattr(x, "node")`: code asks
    so to find out whether a trace runs, and decides nothing by mistake.
    """
    if isinstance(asked_for, type):
        return issubclass(asked_for, Proxy)
    parts = asked_for if isinstance(asked_for, tuple) else get_args(asked_for)
    return asked_for in _OF_PROXIES or any(map(_is_of_proxies, parts))


def _is_method_of(frame: FrameType, *kinds: type) -> bool:
    """Whether a frame runs a method of an object of some class."""
    code = frame.f_code
    name = code.co_varnames[0] if code.co_argcount else ""
    first = frame.f_locals.get(name)
    methods = [vars(c).get(code.co_name) for c in type(first).__mro__]
    return isinstance(first, kinds) and any(
        getattr(method, "__code__", None) is code for method in methods
    )


def hash_of(proxy: Proxy) -> int:
    """The identity, as for tensors; a trace warns of user code that asks.

    So a set or dict finds the proxy itself only, whereas a number or str
    that comes in its place later may be equal to an item.  It is not an error,
    because many programs keep proxies in a dict or set by identity, as they
    keep tensors, and are traced rightly.
    """
    is_tracing = proxy.tracer._is_tracing  # noqa: SLF001
    if is_tracing and frames.is_user(sys._getframe(1)):
        frames.warn(
            f"the hash of {proxy} is asked for: a set or dict finds a "
            "proxy by identity, as it finds a tensor. If the value is a "
            "number or a str, this lookup is decided wrongly: fix the "
            "input with concrete_args="
        )
    return object.__hash__(proxy)
