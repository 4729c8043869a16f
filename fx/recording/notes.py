"""Stage 03, proxies and magic methods: who else gives notes to new nodes.

A tracer notes with each node in which modules it was recorded.  Whoever runs a
graph to record another one has notes already, and the new nodes are to have
those: inside of `fx.traceback.preserve_node_meta()`, NOTES says how they get
them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final, NamedTuple

from ..node import Node
from ..usedef.values import Value


class Notes(NamedTuple):
    """The notes for new nodes of this thread or task.

    Attributes:
        give: gives them to a node; None if the tracer makes its own.
        meta: what they are.
    """

    give: Callable[[Node], None] | None
    meta: dict[str, Value]


NO_NOTES: Final = Notes(None, {})
"""The state before anything is set."""

NOTES: Final[ContextVar[Notes]] = ContextVar("fx node meta", default=NO_NOTES)
"""The notes of now."""
