"""Stage 07, rewriter: what new nodes note of where they came from.

A returned node passes its notes on to the node that takes its place.  Other new
nodes get only those that say where in the user's program the match came from.
"""

from __future__ import annotations

from typing import Final

from ..node import Node
from ..usedef.values import Argument, Value
from .templates import Rewrite

CARRIED: Final = ("stack_trace", "nn_module_stack", "source_fn_stack")
"""Meta of a replaced node that is true of all nodes that replace it."""


def carry(rewrite: Rewrite, outputs: list[Argument]) -> None:
    """Give the new nodes the meta of those that they replace."""
    old = rewrite.operations
    names = tuple(node.name for node in old)
    known: dict[str, Value] = {
        key: node.meta[key]
        for node in reversed(old)
        for key in CARRIED
        if key in node.meta
    }
    for node in rewrite.made:
        node.meta = {**known, **node.meta, "replaces": names}
    made = set(rewrite.made)
    for gone, new in zip(rewrite.match.returning_nodes, outputs, strict=True):
        if isinstance(new, Node) and new in made:
            new.meta = {**new.meta, **gone.meta, "replaces": names}
