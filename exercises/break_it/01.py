"""Break it, stage 01. Check your answer: `python -m stages break 01`."""

from __future__ import annotations


def answer() -> list[str]:
    """Return a list of names to ask `create_name` for, of which this version
    gives two the same name.
    """
    raise NotImplementedError("stage 01: break_it")
