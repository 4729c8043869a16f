"""Extra: what `torch.compile` has wrapped is told whether a trace runs.

It asks torch.fx, may say that none does, and refuses to be traced.  Up to torch
2.14 it reads a flag of the process, and since then it calls a function that
reads one of the thread.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from ..._symbolic_trace import is_fx_tracing, set_is_fx_tracing
from ...torch_private.watching import FLAG, SET_FLAG
from ...tracing.patching import TRACES
from ...use_def.values import AnyValue


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


class Flag:
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


get_is_fx_tracing: Final[Flag] = Flag(bool)
is_fx_tracing_flag: Final[Flag] = Flag(False)


def _setter(theirs: Callable[[bool], None]) -> Callable[[bool], None]:
    """What replaces torch.fx's setter, which must not speak of our traces."""

    @functools.wraps(theirs)
    def set_flag(value: bool) -> None:
        (theirs if TRACES.current is None else set_is_fx_tracing)(value)

    return set_flag


FLAGS: Final = ((*FLAG, Flag), (*SET_FLAG, _setter))
"""What a trace replaces for those who ask torch.fx whether one runs."""
