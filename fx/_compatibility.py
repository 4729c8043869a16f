"""Passes: the decorator by which torch.fx marks what it promises to keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def compatibility(is_backward_compatible: bool) -> Callable[[T], T]:
    """A decorator that returns what it is given.

    Passes that were written for torch.fx are decorated with it, and so are
    the copies that programs have of them.

    Args:
        is_backward_compatible: has no effect.

    torch.fx: _compatibility.py, compatibility; there it adds a sentence on
    stability to the docstring.
    """
    return lambda decorated: decorated
