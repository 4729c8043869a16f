"""Stage 07, rewriter: what new nodes note, and who looks after other notes.

`carry` gives new nodes what the nodes that they replace have noted of where
they came from.  Notes on *values*, such as shapes, may be untrue after a
rewrite, on the new nodes and on all behind them.  The stage leaves these to
the function at `Settling.rule`.  The plain default there does nothing, as
torch.fx; `import fx` puts one there that drops what may be untrue.

A returned node passes its notes on to the node that takes its place.  Other new
nodes get only those that say where in the user's program the match came from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, Final, TypeAlias

from ..graph_module import GraphModule
from ..node import Node
from ..usedef.values import Argument, Value
from .snapshot import Snapshot
from .templates import Rewrite

Options: TypeAlias = Iterable[Mapping[str, object]]
"""What was asked for: see `subgraph_rewriter.RewriteOptions`."""

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


def settle(gm: GraphModule, before: Snapshot, options: Options) -> None:
    """Let somebody look after the notes on the values of a rewritten graph.

    Args:
        gm: the module that was rewritten.
        before: its graph before the first edit; it is restored, with all
            notes, if this is interrupted.
        options: those of the rewrites that were made.
    """
    Settling.rule(gm, before, options)


def leave_notes(gm: GraphModule, before: Snapshot, options: Options) -> None:
    """Leave all notes as they are.

    Raises:
        RuntimeError: notes that are true are asked for.
    """
    if any(chosen.get("recompute_meta") for chosen in options):
        raise RuntimeError(
            "recompute_meta=True needs fx.extra.notes, which is not there: "
            "import fx as a whole, or leave the option out"
        )


class Settling:
    """Where `settle` looks.

    Attributes:
        rule: what is done with the notes.
    """

    rule: ClassVar[Callable[[GraphModule, Snapshot, Options], None]] = (
        staticmethod(leave_notes)
    )
