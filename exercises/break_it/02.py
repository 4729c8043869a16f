"""Break it, stage 02. Check your answer: `python -m stages break 02`."""

from __future__ import annotations

from fx.graph import Graph


def answer() -> Graph:
    """Return a graph that cannot run, and that lint accepts with this version."""
    raise NotImplementedError("stage 02: break_it")
