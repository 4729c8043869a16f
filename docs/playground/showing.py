"""`fx.show` in the reader's browser, which keeps what it made."""

from __future__ import annotations

from functools import wraps
from typing import Any, Final, TypeAlias

from fx.show import page
from fx.show.document import Page

AnyValue: TypeAlias = Any
"""What the reader's program computes with."""

SHOWN: Final[list[Page]] = []
"""The pages that the program has asked for."""


@wraps(page.show)
def show(*args: AnyValue, **kwargs: AnyValue) -> Page:
    """Show a graph, and note the page."""
    SHOWN.append(page.show(*args, **kwargs))
    return SHOWN[-1]
