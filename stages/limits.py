"""A limit of time for code that may never come to an end."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Overtime(BaseException):
    """Code was stopped because it took too long.

    Not an Exception: a loop that catches those must not swallow it.
    """


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Stop the block where it stands after some seconds of work.

    On a busy machine work takes longer, and a block that only waits does not
    work: six times as long is the most.  There is no limit where there are no
    interval timers, nor for somebody who runs a debugger.  A block that
    catches everything is interrupted again each second.

    Args:
        seconds: how long the block may take.

    Raises:
        Overtime: it took longer; raised from the line that was running.
    """
    if not hasattr(signal, "setitimer") or sys.gettrace() is not None:
        yield
        return
    began, work = time.monotonic(), time.process_time()

    def stop(number: int, frame: FrameType | None) -> None:
        if time.process_time() - work > 0.9 * seconds:
            raise Overtime(f"stopped after {seconds:g} seconds")
        if time.monotonic() - began > 6 * seconds:
            raise Overtime(f"stopped after {6 * seconds:g} seconds of waiting")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        no_limit()
        signal.signal(signal.SIGALRM, before)


def no_limit() -> None:
    """Lift the limit of the block that is running, if there is one."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0)
