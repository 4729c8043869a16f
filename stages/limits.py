"""A limit of time for code that may never come to an end."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Overtime(BaseException):
    """Code was stopped because it took too long.

    Not an Exception: a loop that catches those must not swallow it.
    """


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Stop the block where it stands after some seconds.

    Works in the main thread, on systems that have interval timers; elsewhere
    there is no limit.  A block that catches everything is interrupted again
    each second.

    Args:
        seconds: how long the block may take.

    Raises:
        Overtime: it took longer; raised from the line that was running.
    """
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise Overtime(f"stopped after {seconds:g} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
