"""Stage 03, proxies and magic methods: who else gives notes to new nodes.

A tracer notes with each node in which modules it was recorded.  Whoever runs a
graph to record another one has notes already, and the new nodes are to have
those: inside of `fx.traceback.preserve_node_meta()`, NOTES says which.

What is inherited is a list, and not all of `meta`: a shape of the old node
would be wrong on a new one that computes something else.  `from_node` grows by
an entry for each transformation that changes the node.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from contextvars import ContextVar
from typing import Final, NamedTuple

from ..node import Node
from ..use_def.values import AnyValue

INHERITED: Final = (
    "nn_module_stack",
    "torch_fn",
    "source_fn_stack",
    "original_aten",
    "recompute",
    "ac_graph_id",
    "has_backward_hook",
    "from_node",
    "quantization_tag",
    "_numeric_debug_handle",
    "custom",
    "partitioner_tag",
)
"""The keys of meta that a recorded node takes over, besides stack_trace."""


class Notes(NamedTuple):
    """The notes for new nodes of this thread or task.

    Attributes:
        preserved: whether new nodes get them; else the tracer makes its own.
        meta: what they are.
    """

    preserved: bool
    meta: dict[str, AnyValue]


NO_NOTES: Final = Notes(False, {})
"""The state before anything is set."""

NOTES: Final[ContextVar[Notes]] = ContextVar("fx node meta", default=NO_NOTES)
"""The notes of now."""


def inherit(node: Node) -> None:
    """Give a new node the notes it inherits.

    Values are copied one level deep: a node that changes its `custom` must not
    change its neighbour's.
    """
    meta = NOTES.get().meta
    if not meta:
        return
    if meta.get("stack_trace"):
        node.stack_trace = meta["stack_trace"]
    for key in INHERITED:
        if key in meta:
            note = meta[key]
            # For a dict, copy.copy takes ten times as long as its own copy.
            plain = type(note) in (dict, OrderedDict)
            node.meta[key] = note.copy() if plain else copy.copy(note)
