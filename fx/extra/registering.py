"""Extra: puts what is better into the seams of the stages.

If the stages imported what fx has beyond torch.fx, whoever reads a stage would
have to read that too.  So each of them leaves a place with a plain default, a
seam, and fx/__init__.py calls `register` once, when everything else is there.
tests/checks/test_core_alone.py deletes this folder and the passes, and traces,
runs, rewrites and reinplaces real networks with what is left.

    Graph._dead_code_rule   what is dead code: the rule of `fx.effects`, which
                            follows memory, for the one of torch.fx
    Graph._copying          notes that hold nodes, copied, and pickles: for
                            notes that are shared, and an error
    Graph._release          guards of an input that is to be erased, let go of:
                            for a placeholder that has to be without users
    Node._schemas           signatures of what nodes call, for none at all
    Proxy.__hash__          a warning of code that is traced and asks for it,
                            for the identity alone
    TraceRun.other_marks    the leaf functions of torch.fx.wrap, for none
    Tracer._watching        what a trace is to warn of, and advice for errors,
                            for silence
    CodeGen.emitter_of      readable code, and boxes that a call empties: for
                            an error, and for arguments that live longer
    GraphModule._write_folder
                            `to_folder`, for an error
    GraphModule._note_mode  a warning of train() or eval() that comes too late:
                            for silence
    SubgraphMatcher.comparing
                            what the options need, such as `normalize=True`,
                            for an error that names it
    Rewrite.respect         what `respect_mutations=True` refuses, which the
                            core does not take
    Settling.rule           notes on values after a rewrite, dropped if they may
                            be untrue: for notes that stay
    GraphModule.guards      what `fx.trace` relied on, for nothing
    Kind.known              code generators that are saved: that of `fx.trace`,
                            for an error

Beside these, Python is told where a module is that fx has not: `lending`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .. import operator_schemas
from ..codegen.codegen import CodeGen
from ..compat.first_use import importer
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node
from ..passes.utils.matcher_utils import SubgraphMatcher
from ..proxy import Proxy
from ..rewriting.patterns import Exact, MatchOptions
from ..rewriting.templates import Rewrite
from ..rewriting.value_notes import Settling
from ..tracing.torch_marks import take_over
from ..tracing.trace_run import TraceRun
from ..tracing.tracer import Tracer
from ..usedef.dotted_path import find
from ..usedef.values import Value
from .effects import effects
from .example_trace.guards import Guards
from .lending import lending
from .notes import value_notes
from .printing.choosing import emitter_of
from .saving import pickled_graphs
from .saving.code_generators import Kind
from .saving.serialize import write_folder
from .watching.asking import hash_of
from .watching.fixed import warn_of_mode
from .watching.watching import Watching


def register() -> None:
    """Put what is better into the seams."""
    proxies: Value = Proxy  # to a type checker its methods are a tensor's
    proxies.__hash__ = hash_of
    effects.register_tables()
    Graph._dead_code_rule = effects.MemoryRule()  # noqa: SLF001
    Graph._copying = pickled_graphs  # noqa: SLF001
    Graph._release = staticmethod(_release)  # noqa: SLF001
    Node._schemas = operator_schemas  # noqa: SLF001
    CodeGen.emitter_of = staticmethod(emitter_of)
    GraphModule._write_folder = staticmethod(write_folder)  # noqa: SLF001
    GraphModule._note_mode = staticmethod(warn_of_mode)  # noqa: SLF001
    TraceRun.other_marks = (take_over,)
    Tracer._watching = Watching  # noqa: SLF001
    SubgraphMatcher.comparing = staticmethod(_comparing)
    Rewrite.respect = staticmethod(_respect)
    Settling.rule = staticmethod(value_notes.settle)
    GraphModule.guards = property(_guards)
    Kind.known = {"guarded": _GUARDED}
    lending.install()


def _guards(gm: GraphModule) -> Value:
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
        "respect": "matching.respecting",
        "data": "saving.guarded",
        "make": "saving.guarded",
        "release": "example_trace.guarded_code",
    },
)
"""Imports what few programs use, when it is used."""

_GUARDED: Final = Kind(
    lambda codegen: type(codegen).__name__ == "GuardedCodeGen",
    lambda codegen, codec: _later("data")(codegen, codec),
    lambda record, codec: _later("make")(record, codec),
)


def _comparing(options: MatchOptions) -> Exact:
    """What compares two calls as the options say."""
    if not any(options.values()):
        return Exact()
    normalized: Exact = _later("Normalized")(options)
    return normalized


def _respect(graph: Graph, rewrites: Sequence[Rewrite]) -> None:
    """Refuse what would change what a graph writes or reads."""
    _later("respect")(graph, rewrites)
