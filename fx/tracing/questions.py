"""Stage 04, module patching: whether a trace runs, for those who ask.

What `torch.compile` has wrapped asks torch.fx whether a trace runs, and may say
that none does.

That is said of the trace that runs, and a trace that begins inside is not
meant.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from ..torch_private.tracing import FLAG, SET_FLAG
from ..use_def.values import AnyValue
from .patching import TRACES

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

    A function beside it changes the answer.  If that wrote "a trace runs" into
    torch.fx's own memory, because one of ours does, torch.fx would believe it
    for good.
    """

    def __init__(self, theirs: AnyValue) -> None:
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


make_flag: Final[Callable[[AnyValue], AnyValue]] = _Flag
"""Makes what replaces torch.fx's flag."""

FLAGS: Final = ((*FLAG, make_flag), (*SET_FLAG, _setter))
"""What a trace replaces for those who ask torch.fx whether one runs."""
