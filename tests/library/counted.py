"""How much Python runs: a measure that a busy machine does not change."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType


def calls(act: Callable[[], object], *kinds: str) -> int:
    """How many functions `act` calls.

    Args:
        act: what is run, once.
        kinds: the events of `sys.setprofile` that count; by default calls of
            functions in Python.
    """
    count = 0

    def see(frame: FrameType, event: str, arg: object) -> None:
        nonlocal count
        count += event in (kinds or ("call",))

    sys.setprofile(see)
    try:
        act()
    finally:
        sys.setprofile(None)
    return count
