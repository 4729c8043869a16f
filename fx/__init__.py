"""fx: torch.fx built again, as eight stages that a person can read.

    gm = fx.symbolic_trace(module)   trace: run it with proxies
    print(gm.graph)                  a graph of nodes, to look at and edit
    print(gm.code)                   the same as Python, compiled and callable

The names here are those of torch.fx, and so are the modules below it
(`fx.node`, `fx.graph`, `fx.proxy`, …). The stage of each file is in its first
line.
"""

from typing import TYPE_CHECKING

# First, because it refuses a torch that is too old for the files after it.
from .torch_internals.names import TESTED_TORCH
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
from .usedef import lint
from .memory import effects
from .rewriting import rules as rewriting_rules
from .extra import registering as _extra
from .compat import names as _names
from .compat.first_use import importer as _importer
from .compat.torch_graphs import from_torch, to_torch
from .node import Node, map_arg
from .usedef.dead_code import has_side_effect
from .graph import Graph
from .proxy import Proxy, TraceError
from .tracing.wrapping import ProxyableClassMeta, wrap
from .tracing.concrete_args import PH
from .tracing.tracer import Tracer
from .codegen.codegen import CodeGen
from .graph_module import GraphModule
from ._symbolic_trace import symbolic_trace
from .interpreter import Interpreter, Transformer
from .subgraph_rewriter import replace_pattern

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
    from .extra.example_trace.guards import GuardError
    from .extra.example_trace.trace import trace
    from .passes.graph_diff import diff
    from .saving.saved_graph import LoadError, load, save
    from .show.page import show
else:
    # Python sets `fx.show` to the folder when it first imports that: so now,
    # and not when the function of that name is in use.
    from . import show

    del show
    __getattr__ = _importer(
        __name__,
        {
            "GuardError": "extra.example_trace.guards",
            "LoadError": "saving.saved_graph",
            "diff": "passes.graph_diff",
            "load": "saving.saved_graph",
            "save": "saving.saved_graph",
            "show": "show.page",
            "trace": "extra.example_trace.trace",
        },
    )

_names.set_all()

# Extra: what no stage needs is put into the seams of the stages here.
_extra.register()

__version__ = "0.2.0"
tested_torch = TESTED_TORCH
"""The oldest and the newest torch that fx was tested with: `("2.9", "2.15")`.

Nothing is said about a newer torch when fx is imported.  If it has lost a name
that fx needs, the error of what needs it names this range.
"""

__all__ = [
    "CodeGen",
    "Graph",
    "GraphModule",
    "GuardError",
    "Interpreter",
    "LoadError",
    "Node",
    "PH",
    "Proxy",
    "ProxyableClassMeta",
    "TraceError",
    "Tracer",
    "Transformer",
    "annotate",
    "diff",
    "effects",
    "from_torch",
    "graph",
    "graph_module",
    "has_side_effect",
    "immutable_collections",
    "interpreter",
    "lint",
    "load",
    "map_arg",
    "node",
    "operator_schemas",
    "proxy",
    "replace_pattern",
    "rewriting_rules",
    "save",
    "show",
    "subgraph_rewriter",
    "symbolic_trace",
    "to_torch",
    "trace",
    "traceback",
    "wrap",
]
