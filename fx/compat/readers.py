"""Passes: graphs of torch.fx that a program reads as if they were fx's.

`ExportedProgram.graph` stays torch's, since torch.export goes on to use it.  A
program that runs under `fx.as_torch` asks `isinstance(n, torch.fx.Node)` of its
nodes, maps over their arguments, copies them into graphs of its own and runs
them node by node.  So there fx's Node, Graph and GraphModule say yes to
torch's, and what takes a node takes one of either library.  fx's own files are
told the truth.

A graph is of one library.  A node of the other among the arguments of one of
its nodes is a TypeError, whichever of the two libraries makes the graph: a copy
is made by `node_copy`.  Where torch keeps a graph, it gets one of torch.fx.

A node of another graph of fx may be an argument, as in torch.fx, until it is
copied or replaced: it does not know of this use, and lint names it.
"""

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import torch
import torch.fx
from torch.export import ExportedProgram
from torch.fx import graph as torch_graph
from torch.fx import immutable_collections as torch_immutable

from .. import graph as graph_names
from .. import interpreter as interpreter_names
from .. import node as node_names
from ..graph import Graph
from ..graph_module import GraphModule
from ..immutable_collections import immutable_dict, immutable_list
from ..interpreter import Interpreter, Transformer
from ..linked_list.namespace import target_to_str
from ..node import Node
from ..passes.infra import pass_base
from ..proxy import Proxy
from ..use_def import errors
from ..use_def.arguments import found_in, map_aggregate, parts
from ..use_def.values import AnyValue, Argument, Open
from .torch_graphs import codegen_like, from_torch, to_torch

__all__ = ["install"]

_MODULE: Final = "_graph_module"
"""Where an ExportedProgram has its module; libraries assign it."""

_OURS: Final = str(Path(__file__).parents[1])

_TWINS: Final[dict[type, type]] = {
    Node: torch.fx.Node,
    Graph: torch.fx.Graph,
    GraphModule: torch.fx.GraphModule,
    Proxy: torch.fx.Proxy,
    immutable_list: torch_immutable.immutable_list,
    immutable_dict: torch_immutable.immutable_dict,
}
"""Class of fx -> the one of torch.fx that a program takes for it."""


def _is_instance(cls: AnyValue, value: object) -> bool:
    """What `isinstance` says for a class of fx: yes to torch's, in programs."""
    if type.__instancecheck__(cls, value):
        return True
    twin = _TWINS.get(cls)
    if twin is None or not isinstance(value, twin):
        return False
    return not sys._getframe(1).f_code.co_filename.startswith(_OURS)


# -- nodes of either library --------------------------------------------------


def map_arg(a: object, fn: Callable[[AnyValue], Argument]) -> AnyValue:
    """`fx.map_arg`, for nodes of both libraries."""
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    both = (Node, torch.fx.Node)
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, both) else x)


def _connect(
    self: Node, args: AnyValue, kwargs: AnyValue, inputs: tuple[Node, ...]
) -> None:
    """`Node._connect`, which lets inputs be of another graph of fx.

    Such an input does not have this node as a user.
    """
    for node in inputs:
        if node._erased:
            raise errors.not_in_graph(node, self)
    for node in self._inputs:
        node.users.pop(self, None)
    self._args, self._kwargs, self._inputs = args, kwargs, inputs
    for node in inputs:
        if node.graph is self.graph:
            node.users[self] = None


def _node_copy(
    self: Graph,
    node: AnyValue,
    arg_transform: Callable[[AnyValue], Argument] = lambda node: node,
) -> Node:
    """`Graph.node_copy`, for a node of either library."""
    new = self.create_node(
        node.op,
        node.target,
        map_arg(node.args, arg_transform),
        map_arg(dict(node.kwargs), arg_transform),
        node.name,
        node.type,
    )
    new.meta = copy.copy(node.meta)
    return new


def _copy_body(
    self: Graph, g: AnyValue, val_map: dict[AnyValue, Node]
) -> AnyValue:
    """What `Graph.graph_copy` does first, for a graph of torch.fx."""
    for node in g.nodes:
        if node.op == "output":
            return node
        if node not in val_map:
            val_map[node] = self.node_copy(node, val_map.__getitem__)
    return None


_TAKING_NODES: Final = (
    *("_update_args_kwargs", "insert_arg"),
    *("replace_all_uses_with", "replace_input_with"),
)
"""The methods of torch.fx's Node that change what nodes have as arguments."""


def _refusing(method: AnyValue) -> AnyValue:
    """One of them, which raises if a node is one of fx."""

    @functools.wraps(method)
    def checked(self: object, *args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        found = found_in((args, kwargs), (Node,), parts)
        if found is not None:
            raise TypeError(
                f"Node {self} of a graph of torch.fx gets Node {found} of fx "
                "as an argument, and a graph is of one library: make the call "
                "in the graph of fx, or convert that as a whole, "
                "graph.to_torch()"
            )
        return method(self, *args, **kwargs)

    return checked


# -- what is replaced ---------------------------------------------------------


def _for_torchs(
    kind: AnyValue, name: str, is_theirs: Callable[..., bool], other: AnyValue
) -> None:
    """Let a method of fx do something else where a graph is of torch.fx.

    Args:
        kind: the class of the method.
        name: its name.
        is_theirs: asked with the method's arguments.
        other: is called in its place then.
    """
    ours = vars(kind)[name]

    @functools.wraps(ours)
    def either(*args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        called = other if is_theirs(*args, **kwargs) else ours
        return called(*args, **kwargs)

    setattr(kind, name, either)


def _run_theirs(self: AnyValue, *args: AnyValue, **kwargs: AnyValue) -> None:
    """`Interpreter.__init__` for a graph of torch.fx."""
    torch.fx.Interpreter.__init__(self, *args, **kwargs)
    self._keywords = {}


def _transform_theirs(
    self: Transformer, module: torch.fx.GraphModule
) -> AnyValue:
    """`Transformer.__init__`, which gives a module of fx in any case."""
    Transformer.__init__(self, from_torch(module))


def _is_run(
    self: object,
    module: AnyValue,
    garbage_collect_values: bool = True,
    graph: AnyValue = None,
) -> bool:
    """Whether an Interpreter is made for a graph of torch.fx."""
    run = getattr(module, "graph", None) if graph is None else graph
    return isinstance(run, torch.fx.Graph)


def _runs(self: AnyValue, *args: AnyValue, **kwargs: AnyValue) -> bool:
    """Whether an Interpreter has a graph of torch.fx."""
    return isinstance(self.graph, torch.fx.Graph)


def _made_of(cls: AnyValue, *args: AnyValue, **kwargs: AnyValue) -> AnyValue:
    """The graph that a GraphModule is made of, or None."""
    return kwargs.get("graph", args[1] if len(args) > 1 else None)


def _module_of_theirs(
    cls: AnyValue, *args: AnyValue, **kwargs: AnyValue
) -> AnyValue:
    """`GraphModule(root, graph)` of a graph of torch.fx, which it stays.

    A class of the user's below GraphModule cannot be one of torch.fx.
    """
    if cls is not GraphModule:
        raise TypeError(
            f"{cls.__qualname__} gets a graph of torch.fx: give it "
            "fx.from_torch(graph)"
        )
    return torch.fx.GraphModule(*args, **kwargs)


def _one_library() -> None:
    """Have torch refuse nodes of fx, and convert the graphs that it keeps."""
    for name in _TAKING_NODES:
        setattr(torch.fx.Node, name, _refusing(getattr(torch.fx.Node, name)))
    program: AnyValue = ExportedProgram
    init = program.__init__

    @functools.wraps(init)
    def init_exported(
        self: AnyValue,
        root: AnyValue,
        graph: AnyValue,
        *rest: AnyValue,
        **options: AnyValue,
    ) -> None:
        graph = to_torch(graph) if isinstance(graph, Graph) else graph
        init(self, root, graph, *rest, **options)

    def module(self: AnyValue) -> AnyValue:
        return vars(self)[_MODULE]

    def keep(self: AnyValue, gm: AnyValue) -> None:
        ours = isinstance(gm, GraphModule)
        self.__dict__[_MODULE] = to_torch(gm) if ours else gm

    owner: AnyValue = torch.fx.GraphModule
    held = owner.graph

    def assign(self: AnyValue, graph: AnyValue) -> None:
        held.fset(self, to_torch(graph) if isinstance(graph, Graph) else graph)

    owner.graph = property(held.fget, assign)
    program.__init__ = init_exported
    setattr(program, _MODULE, property(module, keep))


def install() -> None:
    """Let fx's classes stand for torch.fx's in the programs of this process.

    It cannot be undone.
    """
    changed: AnyValue = Open
    changed.__instancecheck__ = _is_instance
    root = sys.modules[__name__.partition(".")[0]]
    modules: AnyValue = root, graph_names, interpreter_names, node_names
    for module in modules:
        module.map_arg = map_arg
    node: AnyValue = Node
    node._connect = _connect
    graph: AnyValue = Graph  # a tracer of torch's asks the graph it is given
    graph._target_to_str = lambda self, target: target_to_str(target)

    def is_theirs(self: object, found: object, *rest: object) -> bool:
        return isinstance(found, (torch.fx.Node, torch.fx.Graph))

    _for_torchs(Graph, "node_copy", is_theirs, _node_copy)
    _for_torchs(Graph, "_copy_body", is_theirs, _copy_body)
    _for_torchs(
        Graph,
        "set_codegen",
        lambda _, codegen: isinstance(codegen, torch_graph.CodeGen),
        lambda self, codegen: setattr(self, "_codegen", codegen_like(codegen)),
    )
    for name in (
        "run",
        "boxed_run",
        "run_node",
        "fetch_args_kwargs_from_env",
        "map_nodes_to_values",
    ):
        other = vars(torch.fx.Interpreter)[name]
        _for_torchs(Interpreter, name, _runs, other)
    _for_torchs(Interpreter, "__init__", _is_run, _run_theirs)
    _for_torchs(Transformer, "__init__", _is_run, _transform_theirs)
    _for_torchs(
        GraphModule,
        "__new__",
        lambda *args, **kwargs: isinstance(
            _made_of(*args, **kwargs), torch.fx.Graph
        ),
        _module_of_theirs,
    )
    setattr(pass_base, "refuse_torchs", lambda graph_module: None)  # noqa: B010
    _one_library()
