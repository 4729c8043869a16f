"""Passes: shows a module's graph, or what a pass has changed in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from torch import nn

from ..graph_module import GraphModule
from ..passes.graph_diff import diff
from ..tracing.tracer import Tracer
from ..use_def.errors import refuse_torchs
from ..use_def.values import AnyValue
from .describe import Data, describe, rows_of
from .document import Page
from .measure import measure

__all__ = ["show", "traced"]

Traced: TypeAlias = nn.Module | Callable[..., AnyValue]
"""A graph module, or what `symbolic_trace` takes."""


def show(
    module: Traced,
    *inputs: AnyValue,
    after: Traced | None = None,
    times: bool = False,
    notes: Sequence[str] = (),
    title: str = "",
) -> Page:
    """Make a page on which one can look at a graph.

        fx.show(gm, torch.randn(1, 3, 224, 224)).write("net.html")

    A notebook shows what is returned.  The page has the graph as a list, folded
    by module, with an arc from each value to its uses; the code; and for each
    node its shape, size and time, and the user's line that made it.

    Args:
        module: a graph module, or a module or a function to trace.
        *inputs: inputs for it, with which shapes are found; by default, the
            page shows the shapes that are in `meta`.
        after: what a pass made of it. The page then shows both, and marks
            what `fx.diff` finds.
        times: also run the module on the inputs, three times, and show the
            least time of each node.
        notes: keys of `node.meta`, as a pass has put them there: each is a
            column, and what is not a number is shown as text.
        title: the heading; by default the name of the class or function.

    Raises:
        TypeError: a module is a graph module of torch.fx.
        TraceError: the module cannot be traced.
        KeyError: no node has a note of that name.

    Cost: O(size of the graph), a run without data, and with `times` three runs.
    With `after`, O(n log n) for n nodes and uses.
    """
    gm = traced(module)
    both = [gm] if after is None else [gm, traced(after)]
    sides = [
        describe(one, measure(one, inputs, times and bool(inputs)), notes)
        for one in both
    ]
    for key in notes:
        if not any(
            key in node.meta for one in both for node in one.graph.nodes
        ):
            raise KeyError(
                f"notes={key!r}: no node has it in its meta; write "
                f"node.meta[{key!r}] = ... before the graph is shown"
            )
    data: Data = {"sides": sides, "notes": [*notes]}
    if len(both) > 1:
        difference = diff(*both)
        what = {one.after: one.what for one in difference.changed}
        data["rows"] = rows_of(gm, both[1], difference.pairs, what)
    return Page(title or type(gm).__name__, data)


def traced(module: Traced) -> GraphModule:
    """A module's graph, its nodes with the lines that made them.

    `symbolic_trace` does not record the lines, because that takes time.

    Args:
        module: a module or a function; a graph module stays as it is.

    Raises:
        TypeError: it is one of torch.fx.
        TraceError: it cannot be traced.
    """
    refuse_torchs(module)
    if isinstance(module, GraphModule):
        return module
    tracer = Tracer()
    tracer.record_stack_traces = True
    graph = tracer.trace(module)
    named = type(module) if isinstance(module, nn.Module) else module
    name = getattr(named, "__name__", "root")
    return GraphModule(tracer.root, graph, name)
