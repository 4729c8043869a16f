"""Stage 04, module patching: questions that no proxy is asked itself.

`isinstance(x, torch.Tensor)` looks at the class of x, and `callable(x)` at
what its class has.  A proxy cannot answer like a tensor there, so that a trace
replaces these builtins and warns.  And what `torch.compile` has wrapped asks
torch.fx whether a trace runs, and may say that none does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, get_args

import torch

from ..proxy import Proxy, TracerBase
from ..recording import frames
from ..torch_internals.tracing import FLAG, SET_FLAG
from ..usedef.values import Value
from .patching import TRACES

QUESTIONS: Final = frozenset(("callable", "hasattr", "isinstance"))
"""Builtins that ask what an object is, which a graph cannot record."""

_OF_PROXIES: Final = ("node", "tracer")
"""What each proxy has, and no tensor."""

_A_TENSOR: Final = torch.empty(0)


def warn_unless_a_tensor_agrees(
    function: Callable[..., Value], args: tuple[Value, ...], result: Value
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
    if frame is not None and frames.is_method_of(frame, Proxy, TracerBase):
        return  # it is not part of the program that is traced
    frames.warn(
        f"{function.__name__} of {asked} is {result}, because it is a proxy; "
        "of a tensor it is not, and what follows is decided while tracing. "
        "Ask something else, or move the code into a function marked with "
        "fx.wrap"
    )


def _is_of_proxies(asked_for: Value) -> bool:
    """Whether it is asked on purpose whether something is a proxy.

    That is `isinstance(x, (int, Proxy))`, or `hasattr(x, "node")`.
    """
    if isinstance(asked_for, type):
        return issubclass(asked_for, Proxy)
    parts = asked_for if isinstance(asked_for, tuple) else get_args(asked_for)
    return asked_for in _OF_PROXIES or any(map(_is_of_proxies, parts))


# -- whether a trace runs ------------------------------------------------------

_SAID: Final[ContextVar[tuple[object, bool] | None]] = ContextVar(
    "fx is tracing", default=None
)
"""A trace, or None outside of traces, and the answer during that, if it is not
the true one."""


def is_fx_tracing() -> bool:
    """Whether a symbolic trace runs in this thread or task.

    torch.fx: _symbolic_trace.py, is_fx_tracing
    """
    trace, said = TRACES.current, _SAID.get()
    return said[1] if said and said[0] is trace else trace is not None


def set_is_fx_tracing(value: bool) -> None:
    """Have `is_fx_tracing` give another answer while this trace runs.

    Outside of a trace, it has that answer outside of traces.

    torch.fx: _symbolic_trace.py, _set_is_fx_tracing
    """
    trace = TRACES.current
    is_true = value == (trace is not None)
    _SAID.set(None if is_true else (trace, value))


@contextmanager
def is_fx_tracing_context(value: bool) -> Iterator[None]:
    """A block in which `is_fx_tracing` gives another answer.

    torch.fx: _symbolic_trace.py, _is_fx_tracing_context
    """
    before = is_fx_tracing()
    set_is_fx_tracing(value)
    try:
        yield
    finally:
        set_is_fx_tracing(before)


class _Flag:
    """Whether a trace of fx runs here, or one of torch.fx.

    It is read as a flag or called as a function, as the torch that is
    installed does.
    """

    def __init__(self, theirs: Value) -> None:
        """Stand for torch.fx's own flag, or its function, too."""
        self._theirs = theirs

    def __bool__(self) -> bool:
        """Answer whoever reads the flag."""
        return is_fx_tracing() or (not TRACES.current and bool(self._theirs))

    def __call__(self) -> bool:
        """Answer whoever calls the function."""
        return is_fx_tracing() or (not TRACES.current and bool(self._theirs()))


def _setter(theirs: Callable[[bool], None]) -> Callable[[bool], None]:
    """What replaces torch.fx's setter, which must not speak of our traces."""

    @functools.wraps(theirs)
    def set_flag(value: bool) -> None:
        (theirs if TRACES.current is None else set_is_fx_tracing)(value)

    return set_flag


make_flag: Final[Callable[[Value], Value]] = _Flag
"""Makes what replaces torch.fx's flag."""

FLAGS: Final = ((*FLAG, make_flag), (*SET_FLAG, _setter))
"""What a trace replaces for those who ask torch.fx whether one runs."""
