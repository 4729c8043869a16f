"""fx: torch.fx built again, as eight stages that a person can read.

    gm = fx.symbolic_trace(module)   trace: run it with proxies
    print(gm.graph)                  a graph of nodes, to look at and edit
    print(gm.code)                   the same as Python, compiled and callable

The names here are those of torch.fx, and so are the modules below it
(`fx.node`, `fx.graph`, `fx.proxy`, …). The stage of each file is in its first
line.
"""

# First, because it refuses a torch that is too old for the files after it.
from .torch_private.names import TESTED_TORCH
from . import (
    # stage 02
    immutable_collections,
    operator_schemas,
    node,
    graph,
    # stage 03
    traceback,
    proxy,
    annotate,
    # stage 05
    graph_module,
    _symbolic_trace,
    # stage 06
    interpreter,
    # stage 07
    subgraph_rewriter,
)
from .use_def import lint
from .rewriting import rules as rewriting_rules
from .node import Node, map_arg
from .use_def.dead_code import has_side_effect
from .graph import Graph
from .proxy import Proxy, TraceError
from .tracing.wrapping import ProxyableClassMeta, wrap
from .tracing.inputs import PH
from .tracing.tracer import Tracer
from .codegen import nested as _nested
from .codegen.codegen import CodeGen
from .graph_module import GraphModule
from ._symbolic_trace import symbolic_trace
from .interpreter import Interpreter, Transformer
from .subgraph_rewriter import replace_pattern

__version__ = "1.0.0"
tested_torch = TESTED_TORCH
"""The oldest and the newest torch that fx was tested with: `("2.9", "2.15")`.

Nothing is said about a newer torch when fx is imported.  If it has lost a name
that fx needs, the error of what needs it names this range.
"""

__all__ = [
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "PH",
    "Proxy",
    "ProxyableClassMeta",
    "TraceError",
    "Tracer",
    "Transformer",
    "annotate",
    "graph",
    "graph_module",
    "has_side_effect",
    "immutable_collections",
    "interpreter",
    "lint",
    "map_arg",
    "node",
    "operator_schemas",
    "proxy",
    "replace_pattern",
    "rewriting_rules",
    "subgraph_rewriter",
    "symbolic_trace",
    "traceback",
    "wrap",
]

# -- extra --------------------------------------------------------------------
# What follows is all that fx has beside its stages.  Without these lines, and
# without the files that say "Extra:" or "Passes:" in their first line, the
# stages trace, run and rewrite as before (tests/checks/test_core_alone.py).

from typing import TYPE_CHECKING

from .compat import names as _names
from .compat.first_use import importer as _importer
from .extra import registering as _extra

if TYPE_CHECKING:  # what is imported on first use: see fx/compat/first_use.py
    from . import _compatibility as _compatibility_names
    from .experimental import proxy_tensor as _proxy_tensor
    from .passes import (
        conv_bn_fusion as _conv_bn_fusion,
        fake_tensor_prop as _fake_tensor_prop,
        profiling as _profiling,
        reinplace as _reinplace,
        shape_prop as _shape_prop,
    )
    from .compat.torch_graphs import from_torch, to_torch
    from .extra.effects import effects
    from .passes.graph_diff import diff
    from .rewriting.node_rules import Rewriter, rewrite
    from .extra.example_trace.guarded_code import set_outputs
    from .extra.example_trace.guards import GuardError
    from .extra.example_trace.trace import trace
    from .extra.saving.saved_graph import LoadError, load, save
    from .show.page import show
else:
    # Python sets `fx.show` to the folder when it first imports that: so now,
    # and not when the function of that name is in use.
    from . import show

    del show
    __getattr__ = _importer(
        __name__,
        {
            "GuardError": "extra.example_trace.guards.GuardError",
            "LoadError": "extra.saving.saved_graph.LoadError",
            "Rewriter": "rewriting.node_rules.Rewriter",
            "diff": "passes.graph_diff.diff",
            "effects": "extra.effects.effects",
            "from_torch": "compat.torch_graphs.from_torch",
            "load": "extra.saving.saved_graph.load",
            "rewrite": "rewriting.node_rules.rewrite",
            "save": "extra.saving.saved_graph.save",
            "set_outputs": "extra.example_trace.guarded_code.set_outputs",
            "show": "show.page.show",
            "to_torch": "compat.torch_graphs.to_torch",
            "trace": "extra.example_trace.trace.trace",
        },
    )


def __dir__() -> list[str]:
    """All names, also those that are imported on first use: for completion."""
    return sorted({*globals(), *__all__})


_names.set_all()
_extra.register()

__all__ += [
    "GuardError",
    "LoadError",
    "Rewriter",
    "diff",
    "effects",
    "from_torch",
    "load",
    "rewrite",
    "save",
    "set_outputs",
    "show",
    "to_torch",
    "trace",
]
