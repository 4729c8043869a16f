"""Passes: a module without what only training needs.

In evaluation mode a BatchNorm can be part of the layer before it, and a dropout
does nothing.  The other functions here are for passes that replace one module
by another.

torch.fx's file also converts networks to the memory layout of oneDNN, which is
lent: `torch.compile` chooses layouts by itself, and measures them.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, MutableMapping
from typing import TYPE_CHECKING

from torch import nn

from .._symbolic_trace import symbolic_trace
from ..extra.effects.modules import is_torchs
from ..extra.lending.lending import names_of
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node
from ..passes.conv_bn_fusion import fold_conv_bn
from ..rewriting.node_rules import Rewriter, rewrite
from ..use_def.dotted_path import find

__all__ = [
    "extract_subgraph",
    "fuse",
    "matches_module_pattern",
    "remove_dropout",
    "replace_node_module",
]

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__)


def fuse(
    model: nn.Module, inplace: bool = False, no_trace: bool = False
) -> nn.Module:
    """Fold each BatchNorm into the layer before it, as `fold_conv_bn` does.

    Args:
        model: in evaluation mode; a BatchNorm in training stays.
        inplace: do not copy the model before.
        no_trace: do not trace a GraphModule again, which keeps the noted
            shapes that folding into linear layers needs.

    Returns:
        A GraphModule; `model` itself, if it is one, and neither copied nor
        traced.

    torch.fx: experimental/optimization.py, fuse; it looks at pairs of
    neighbours only, so that a layer which is called twice is folded twice, and
    it loses hooks.
    """
    if not inplace:
        model = copy.deepcopy(model)
    if not (no_trace and isinstance(model, GraphModule)):
        model = _traced(model)
    fold_conv_bn(model)
    return model


def _traced(model: nn.Module) -> GraphModule:
    """The trace of a module; of one that `fx.trace` has made, a copy.

    Its inputs may be nested, for which a symbolic trace has one proxy.
    """
    if isinstance(model, GraphModule) and model.guards != ():
        return GraphModule(model, copy.deepcopy(model.graph))
    return symbolic_trace(model)


def remove_dropout(model: nn.Module) -> nn.Module:
    """Trace a module, and leave out each dropout, even in training.

    Left out are calls of `nn.Dropout` itself, unless other code runs with them,
    as a hook does.  In evaluation mode they return their very input.

    torch.fx: experimental/optimization.py, remove_dropout
    """

    @rewrite("call_module")
    def drop(node: Node, rewriter: Rewriter) -> None:
        module = find(gm, str(node.target))
        if type(module) is nn.Dropout and is_torchs(module):
            rewriter.replace(node, *node.all_input_nodes)

    gm = _traced(model)
    drop(gm)
    gm.delete_all_unused_submodules()
    return gm


def matches_module_pattern(
    pattern: Iterable[type], node: Node, modules: Mapping[str, nn.Module]
) -> bool:
    """Whether a node, and the node that is its first argument, call modules.

    Args:
        pattern: the classes of both modules, that of the argument first. A
            subclass is another class.
        node: the second call.
        modules: path -> module, as `dict(gm.named_modules())`.

    torch.fx: experimental/optimization.py, matches_module_pattern
    """
    calls = (*node.args[:1], node) if node.args else ()
    return bool(calls) and all(
        isinstance(call, Node)
        and call.op == "call_module"
        and type(modules.get(str(call.target))) is expected
        for expected, call in zip(pattern, calls, strict=False)
    )


def replace_node_module(
    node: Node, modules: MutableMapping[str, nn.Module], new_module: nn.Module
) -> None:
    """Put another module where the one is that a node calls.

    All calls of its path are changed; `fx.replace_pattern` replaces one.

    Args:
        node: a call of the module.
        modules: path -> module, as `dict(gm.named_modules())`; updated.
        new_module: the other module.

    Raises:
        AssertionError: the target is not a path, so no module is called.

    torch.fx: experimental/optimization.py, replace_node_module
    """
    if not isinstance(node.target, str):
        raise AssertionError(f"Expected str target, got {type(node.target)}")
    parent, _, name = node.target.rpartition(".")
    modules[node.target] = new_module
    setattr(modules[parent], name, new_module)


def extract_subgraph(
    orig_module: nn.Module,
    nodes: list[Node],
    inputs: list[Node],
    outputs: list[Node],
) -> GraphModule:
    """Copy some nodes of a graph into a module of their own.

    Args:
        orig_module: has what the nodes name; it is shared.
        nodes: in an order in which they can run.
        inputs: the values that the new module takes, in this order.
        outputs: those that it returns, as a list.

    Raises:
        KeyError: a node uses a value that is neither before it nor an input.

    torch.fx: experimental/optimization.py, extract_subgraph
    """
    graph = Graph()
    copies = {node: graph.placeholder(node.name) for node in inputs}
    for node in nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output([copies[node] for node in outputs])
    graph.lint()
    return GraphModule(orig_module, graph)
