"""Extra: puts what is better into the seams of the stages.

fx/__init__.py calls `register` once, when everything else is there.

    Graph._dead_code_rule   what is dead code: the rule of `fx.effects`, which
                            follows memory, for the one of torch.fx
    Node._schemas           signatures of what nodes call, for none at all
    Captured.warn_of_writes recorded writes into tensors that are not proxies:
                            a warning, for none
    SubgraphMatcher.comparing
                            what the options need, such as `normalize=True`,
                            for an error that names it
    Changes.run             notes on values after a rewrite: fake tensors, for
                            an error
    GraphModule.guards      what `fx.trace` relied on, for nothing
    Kind.known              code generators that are saved: those with guards,
                            for an error
"""

from __future__ import annotations

from typing import Final

from .. import operator_schemas
from ..compat.first_use import importer
from ..graph import Graph
from ..graph_module import GraphModule
from ..memory import effects
from ..node import Node
from ..passes.utils.matcher_utils import SubgraphMatcher
from ..rewriting.call_forms import Normalized
from ..rewriting.patterns import Exact, MatchOptions
from ..rewriting.value_notes import Changes, Recomputing
from ..saving.code_generators import Kind
from ..tracing.captured import Captured
from ..usedef.values import Value
from .captured_writes import warn_of_writes


def register() -> None:
    """Put what is better into the seams."""
    effects.register_tables()
    Graph._dead_code_rule = effects.MemoryRule()  # noqa: SLF001
    Node._schemas = operator_schemas  # noqa: SLF001
    Captured.warn_of_writes = staticmethod(warn_of_writes)
    SubgraphMatcher.comparing = staticmethod(_comparing)
    Changes.run = staticmethod(_on_fake_tensors)
    GraphModule.guards = property(_guards)
    Kind.known = {"guarded": _GUARDED}


def _guards(gm: GraphModule) -> Value:
    """What the trace of a module relied on, which its code checks."""
    return getattr(gm.graph._codegen, "guards", ())


_saved: Final = importer(
    "fx.extra.example_trace", {"data": "saved", "make": "saved"}
)
"""Imports what saves guards, when a graph or file has some."""

_GUARDED: Final = Kind(
    lambda codegen: hasattr(codegen, "guards"),
    lambda codegen, codec: _saved("data")(codegen, codec),
    lambda record, codec: _saved("make")(record, codec),
)


def _comparing(options: MatchOptions) -> Exact:
    """What compares two calls as the options say."""
    return Normalized(options) if any(options.values()) else Exact()


def _on_fake_tensors(gm: GraphModule, change: Changes) -> Recomputing:
    """Run a graph on fake tensors; imports what that needs."""
    late = importer("fx.passes", {"Recomputed": "recomputed_notes"})
    recomputed: Value = late("Recomputed")
    found: Recomputing = recomputed(gm, change)
    return found
