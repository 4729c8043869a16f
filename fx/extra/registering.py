"""Extra: fx's own additions, registered in the hooks that the stages leave.

If the stages imported what fx has beyond torch.fx, whoever reads a stage would
have to read that too.  So fx/__init__.py calls `register` once, when everything
else is there, and it puts methods into the classes of the stages.
tests/checks/test_core_alone.py deletes this folder and the passes, and traces,
runs, rewrites and reinplaces real networks with what is left.

Most of it is imported when it is first asked for: see `Later`.  Beside these,
Python is told where a module is that fx has not: `lending`.
"""

from __future__ import annotations

from typing import Final

from .. import operator_schemas
from ..codegen.codegen import CodeGen
from ..compat.first_use import Later, load
from ..graph import Graph
from ..graph_module import GraphModule, _WrappedCall
from ..node import Node
from ..passes.utils.matcher_utils import Search, SubgraphMatcher
from ..proxy import Proxy, TracerBase
from ..rewriting.patterns import Exact, MatchOptions
from ..rewriting.snapshot import Snapshot
from ..rewriting.templates import Rewrite
from ..tracing.tracer import Tracer
from ..use_def.dotted_path import find
from ..use_def.values import AnyValue
from .lending import lending

_LATER: Final[tuple[tuple[type, str, str], ...]] = (
    # What is dead code: the rule that follows memory, for torch.fx's.
    (Graph, "_dead_code_rule", "extra.effects.effects.memory_rule"),
    # Pickles, which otherwise follow nodes without end.
    (Graph, "__getstate__", "extra.saving.pickled_graphs.state_of"),
    (Graph, "__setstate__", "extra.saving.pickled_graphs.restore"),
    (Node, "__reduce__", "extra.saving.pickled_graphs.reduced"),
    (GraphModule, "__reduce__", "extra.saving.pickled_modules.reduced"),
    (
        GraphModule,
        "__getstate__",
        "extra.saving.pickled_modules.state_to_pickle",
    ),
    (GraphModule, "__setstate__", "extra.saving.pickled_modules.restore"),
    # What a trace is to warn of, and advice for errors, for silence.
    (Tracer, "_watching", "extra.watching.watching.Watching"),
    (Proxy, "__hash__", "extra.watching.asking.hash_of"),
    # A folder with the code and the state.
    (GraphModule, "to_folder", "extra.saving.serialize.to_folder"),
    # Warns of a mode that comes too late.
    (GraphModule, "train", "extra.watching.fixed.train"),
    # What the options of patterns need.
    (Search, "moves_across", "extra.matching.respecting.moves_across"),
    # The same graph or module in torch.fx.
    (Graph, "to_torch", "compat.torch_graphs.to_torch"),
    (GraphModule, "to_torch", "compat.torch_graphs.to_torch"),
    # Notes on values after a rewrite, found anew.
    (Snapshot, "recompute", "extra.value_notes.recompute"),
)
"""Methods that are imported when they are asked for: class, name and path."""

_STATIC: Final[tuple[tuple[type, str, str], ...]] = (
    # Nodes in notes are copied with their graph; else they are shared.
    (Graph, "_move_notes", "extra.saving.packing.move_metas"),
    # Readable code, and boxes that a call empties.
    (CodeGen, "emitter_of", "extra.printing.choosing.emitter_of"),
    # An error in a block that a graph has begun ends the block.
    (_WrappedCall, "explained", "extra.example_trace.guards.explained"),
    # What the options of rewrites need.
    (Rewrite, "respect", "extra.matching.respecting.respect"),
)
"""Functions of which the same is true; they stand there as static methods."""


def register() -> None:
    """Put the methods into the classes."""
    for holder, name, method in _methods():
        setattr(holder, name, method)
    for table in _LATER, _STATIC:
        for holder, name, path in table:
            later = Later(holder, name, path, static=table is _STATIC)
            setattr(holder, name, later)
    lending.install()


def _methods() -> tuple[tuple[AnyValue, str, AnyValue], ...]:
    """What is put where at once: class, name and method."""
    return (
        # Guards let go of an input that is erased.
        (Graph, "_release", staticmethod(_release)),
        # What reads signatures of operators.
        (
            Node,
            "normalized_arguments",
            operator_schemas.normalized_arguments,
        ),
        (
            TracerBase,
            "_refuse_writes",
            staticmethod(operator_schemas.check_for_mutable_operation),
        ),
        # What `fx.trace` relied on.
        (GraphModule, "guards", property(_guards)),
        # What the options of patterns need.
        (SubgraphMatcher, "comparing", staticmethod(_comparing)),
    )


def _guards(gm: GraphModule) -> AnyValue:
    """What the trace of a module relied on, which its first node checks."""
    guards = load("extra.example_trace.guards.Guards")
    for node in gm.graph.find_nodes(op="call_module"):
        called = find(gm, str(node.target))
        if isinstance(called, guards):
            return called
    return ()


def _release(place: Node) -> None:
    """Let no guards need a placeholder that is to be erased."""
    if place.users:
        load("extra.example_trace.guarded_code.release")(place)


def _comparing(options: MatchOptions) -> Exact:
    """What compares two calls as the options say."""
    if not any(options.values()):
        return Exact()
    normalized: Exact = load("extra.matching.call_forms.Normalized")(options)
    return normalized
