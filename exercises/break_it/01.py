"""Break it, stage 01. Check your answer: `python -m stages break 01`."""

from __future__ import annotations


def answer() -> list[str]:
    """Return a list of names for which this faulty `create_name` gives out
    the same name twice.
    """
    raise NotImplementedError("stage 01: break_it")
