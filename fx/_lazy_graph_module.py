"""Passes: the graph modules that torch.fx compiles when they are first called.

fx compiles each at once; a program that asks for a lazy one gets an ordinary
one, whose code is there.  The class `_LazyGraphModule` is missing, so that a
program that asks whether a module is lazy gets an ImportError, and not a class
that no module has.
"""

from __future__ import annotations

from .graph_module import GraphModule
from .use_def.values import AnyValue


def _make_graph_module(
    *args: AnyValue,
    graph_module_cls: type[GraphModule] = GraphModule,
    **kwargs: AnyValue,
) -> GraphModule:
    """Make a graph module, of a class that may be given.

    torch.fx: _lazy_graph_module.py, _make_graph_module
    """
    return graph_module_cls(*args, **kwargs)


def _unwrap_lazy_graph_module(gm: GraphModule) -> GraphModule:
    """Give a graph module whose code is there: this one.

    torch.fx: _lazy_graph_module.py, _unwrap_lazy_graph_module
    """
    return gm
