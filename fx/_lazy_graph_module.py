"""Passes: the graph modules that torch.fx compiles when they are first called.

fx compiles each at once; a program that asks for a lazy one gets an ordinary
one, whose code is there.  What makes torch.fx's lazy is torch's own: a graph
module of Dynamo's may be one, and none of fx is.
"""

from __future__ import annotations

from .graph_module import GraphModule
from .torch_private.torch_fx import LazyGraphModule as _LazyGraphModule
from .torch_private.torch_fx import skip_lazy as _force_skip_lazy_graph_module
from .torch_private.torch_fx import use_lazy as _use_lazy_graph_module
from .use_def.values import AnyValue

__all__ = [
    "_LazyGraphModule",
    "_force_skip_lazy_graph_module",
    "_make_graph_module",
    "_unwrap_lazy_graph_module",
    "_use_lazy_graph_module",
]


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
