"""A time limit for code that may never end."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Overtime(BaseException):
    """Code was stopped because it took too long.

    It is not an Exception, so that code which catches every Exception does
    not swallow it.
    """


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Interrupt the block after some seconds of processor time.

    Processor time counts, because a busy machine makes every block slower.  A
    block that waits instead of working is interrupted after six times as
    long, and one that catches the error is interrupted again each second.
    Without interval timers (on Windows), and in a debugger, nothing is
    interrupted.

    Args:
        seconds: how much processor time the block may take.

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
    """Cancel the limit of the block that is running, if there is one."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0)
