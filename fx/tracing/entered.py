"""Stage 04, module patching: the mode that a graph was traced in.

    F.dropout(x, 0.5, training=self.training)

records `training=True`, whatever `eval()` says later.  To trace in the mode in
which one runs is right and common, so nobody is told before they change the
mode.  The note in the graph is made by who watches the trace (`watch`).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ..graph import Graph
from ..recording import frames

FIXED_MODE: Final = "fixed_training"
"""The key in the output's `meta` for a `FixedMode`, as a plain tuple."""


class FixedMode(NamedTuple):
    """The mode in which a root was traced, and which modules it decides for.

    Attributes:
        training: of the root, when it was traced.
        paths: of the modules whose `training` the code has read, if theirs was
            the same; "" is the root.
    """

    training: bool
    paths: tuple[str, ...]


def warn_of_mode(graph: Graph, training: bool) -> None:
    """Warn if a graph is to run in another mode than it was traced in.

    Args:
        graph: whose module gets the mode.
        training: the mode.
    """
    last = next(iter(reversed(graph.nodes)), None)
    noted = last and last.meta.get(FIXED_MODE)
    if not noted:
        return
    traced, paths = FixedMode(*noted)
    if traced != training:
        where = ", ".join(path or "the root" for path in paths)
        asked, then = ("train", "eval") if training else ("eval", "train")
        frames.warn(
            f"{asked}() does not reach all of this graph: it was traced after "
            f"{then}(), and what forward did because of `training` is fixed, "
            f"in {where}. Trace the module again in the mode in which it is "
            "to run, or use a module such as nn.Dropout, which the graph calls"
        )
