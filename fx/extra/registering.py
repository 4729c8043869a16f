"""Extra: puts what is better where the stages leave room.

If the stages imported what fx has beyond torch.fx, whoever reads a stage would
have to read that too.  So fx/__init__.py calls `register` once, when everything
else is there, and it puts methods into the classes of the stages.
tests/checks/test_core_alone.py deletes this folder and the passes, and traces,
runs, rewrites and reinplaces real networks with what is left.

Beside these, Python is told where a module is that fx has not: `lending`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from .. import graph_module, operator_schemas
from ..codegen.codegen import CodeGen
from ..compat.first_use import importer
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node
from ..passes.utils.matcher_utils import Search, SubgraphMatcher
from ..proxy import Proxy, TracerBase
from ..rewriting.patterns import Exact, MatchOptions
from ..rewriting.snapshot import Snapshot
from ..rewriting.templates import Rewrite
from ..tracing.tracer import Tracer
from ..use_def.dotted_path import find
from ..use_def.values import AnyValue
from .effects import effects
from .example_trace.guards import Guards
from .lending import lending
from .printing.choosing import emitter_of
from .saving import pickled_graphs, pickled_modules
from .saving.packing import move_metas
from .saving.serialize import to_folder
from .watching.asking import hash_of
from .watching.fixed import train
from .watching.watching import Watching


def register() -> None:
    """Put the methods into the classes."""
    effects.register_tables()
    for holder, name, method in _methods():
        setattr(holder, name, method)
    lending.install()


def _methods() -> tuple[tuple[AnyValue, str, AnyValue], ...]:
    """What is put where: class, name and method."""
    return (
        # What is dead code: the rule that follows memory, for torch.fx's.
        (Graph, "_dead_code_rule", effects.MemoryRule()),
        # Nodes in notes are copied with their graph; else they are shared.
        (Graph, "_move_notes", staticmethod(move_metas)),
        # Guards let go of an input that is erased.
        (Graph, "_release", staticmethod(_release)),
        # Pickles, which otherwise follow nodes without end.
        (Graph, "__getstate__", pickled_graphs.state_of),
        (Graph, "__setstate__", pickled_graphs.restore),
        (Node, "__reduce__", pickled_graphs.reduced),
        (GraphModule, "__reduce__", pickled_modules.reduced),
        (GraphModule, "__getstate__", pickled_modules.state_to_pickle),
        (GraphModule, "__setstate__", pickled_modules.restore),
        (
            graph_module,
            "reduce_graph_module",
            pickled_modules.reduce_graph_module,
        ),
        # Pickles name it as those of torch.fx do.
        (
            pickled_modules.reduce_graph_module,
            "__module__",
            graph_module.__name__,
        ),
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
        # What a trace is to warn of, and advice for errors, for silence.
        (Tracer, "_watching", Watching),
        (Proxy, "__hash__", hash_of),
        # Readable code, and boxes that a call empties.
        (CodeGen, "emitter_of", staticmethod(emitter_of)),
        (GraphModule, "to_folder", to_folder),
        # Warns of a mode that comes too late.
        (GraphModule, "train", train),
        # What `fx.trace` relied on.
        (GraphModule, "guards", property(_guards)),
        # What the options of patterns and rewrites need.
        (SubgraphMatcher, "comparing", staticmethod(_comparing)),
        (Rewrite, "respect", staticmethod(_respect)),
        (Search, "moves_across", _moves_across),
        # Notes on values after a rewrite are dropped if they may be untrue.
        (Snapshot, "settle", _settle),
    )


def _guards(gm: GraphModule) -> AnyValue:
    """What the trace of a module relied on, which its first node checks."""
    for node in gm.graph.find_nodes(op="call_module"):
        called = find(gm, str(node.target))
        if isinstance(called, Guards):
            return called
    return ()


def _release(place: Node) -> None:
    """Let no guards need a placeholder that is to be erased."""
    if place.users:
        _later("release")(place)


_later: Final = importer(
    "fx.extra",
    {
        "Normalized": "matching.call_forms",
        "moves_across": "matching.respecting",
        "respect": "matching.respecting",
        "release": "example_trace.guarded_code",
        "settle": "value_notes",
    },
)
"""Imports what few programs use, when it is used."""


def _comparing(options: MatchOptions) -> Exact:
    """What compares two calls as the options say."""
    if not any(options.values()):
        return Exact()
    normalized: Exact = _later("Normalized")(options)
    return normalized


def _respect(graph: Graph, rewrites: Sequence[Rewrite]) -> None:
    """Refuse what would change what a graph writes or reads."""
    _later("respect")(graph, rewrites)


def _moves_across(search: Search, inside: set[Node]) -> str:
    """Why a write and a read would change places; "" if they would not."""
    why: str = _later("moves_across")(search, inside)
    return why


def _settle(
    before: Snapshot, gm: GraphModule, options: Iterable[Mapping[str, object]]
) -> None:
    """Drop the notes on values that may be untrue after a rewrite."""
    _later("settle")(before, gm, options)
