"""Passes: a graph of torch.fx as one of fx, and back.

Dynamo, torch.export and most libraries hand out graphs of torch.fx.
`from_torch` makes the same graph of fx's nodes, so that fx can read, rewrite
and run it, and `to_torch` makes a graph of torch.fx of that.  A module's
parameters, buffers and submodules are shared by both, not copied, so that a
step of training on the copy trains the model.

    def backend(gm, inputs):
        ours = fx.from_torch(gm)
        fx.replace_pattern(ours, pattern, replacement)
        return fx.to_torch(ours)

    torch.compile(model, backend=backend)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, overload

import torch.fx
from torch.fx import graph as torch_graph

from ..codegen.codegen import CodeGen
from ..codegen.nested import _BoxedCodeGen, _PyTreeCodeGen
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import map_arg
from ..recording import frames
from ..torch_private import torch_fx
from ..torch_private.modules import HOOKS, beside_forward
from ..use_def.protocols import PyTreeInfo
from ..use_def.values import AnyValue

__all__ = ["from_torch", "to_torch"]

_CODEGENS: Final[dict[type, type]] = {
    torch_graph.CodeGen: CodeGen,
    torch_fx.PyTreeCodeGen: _PyTreeCodeGen,
    torch_fx.BoxedCodeGen: _BoxedCodeGen,
}
"""Code generator of torch.fx -> fx's that writes the same.

A class of the user's own is refused: the other library could not call it, and
without it the module would take other arguments.
"""


@overload
def from_torch(source: torch.fx.GraphModule | GraphModule) -> GraphModule: ...
@overload
def from_torch(source: torch.fx.Graph | Graph) -> Graph: ...
def from_torch(
    source: torch.fx.GraphModule | torch.fx.Graph | GraphModule | Graph,
) -> GraphModule | Graph:
    """The same graph or module in fx; `source` stays as it is.

        gm = fx.from_torch(torch.fx.symbolic_trace(model))

    Nodes keep their order, names, types and meta (a shallow copy), the graph
    keeps its code generator, nested inputs included.  The module has what the
    nodes fetch and call, the same objects, and the notes in `meta`.  A child
    that is a torch.fx GraphModule stays one.  Hooks of the module are left out,
    with a warning.

    Args:
        source: a graph of torch.fx, or a module that has one. What is fx's
            already is returned as it is.

    Raises:
        TypeError: `source` is neither; the graph has a code generator of its
            own class, which fx could not call.
        RuntimeError: a node is used before it is defined.

    Cost: O(nodes + size of their arguments).
    """
    if isinstance(source, (Graph, GraphModule)):
        return source
    if isinstance(source, torch.fx.Graph):
        return _graph_from_torch(source)
    if not isinstance(source, torch.fx.GraphModule):
        raise TypeError(
            "from_torch takes a torch.fx.Graph or torch.fx.GraphModule, not "
            f"{type(source).__qualname__}"
        )
    _warn_of_hooks(source)
    graph = _graph_from_torch(source.graph)
    module = GraphModule(source, graph, type(source).__name__)
    module.meta.update(source.meta)
    return module


def read_from_torch(source: AnyValue) -> AnyValue:
    """A pattern or replacement of torch.fx as one of fx.

    Those that torch.export has made cannot be had in another way.  They are
    converted unasked, because nobody keeps the nodes of a pattern.

    A graph without a module keeps its `owning_module`, from which its nodes
    fetch attributes. The checks of the inputs that torch.export puts in front
    are left out: they are no part of what is looked for.

    Args:
        source: a graph or module of torch.fx; it stays as it is.
    """
    ours: AnyValue = from_torch(source)
    graph = ours
    if isinstance(ours, GraphModule):
        graph = ours.graph
    else:
        graph.owning_module = source.owning_module
    for node in graph.find_nodes(op="call_module", target="_guards_fn"):
        if not node.users:
            graph.erase_node(node)
    return ours


@overload
def to_torch(source: GraphModule) -> torch.fx.GraphModule: ...
@overload
def to_torch(source: Graph) -> torch.fx.Graph: ...
def to_torch(
    source: GraphModule | Graph,
) -> torch.fx.GraphModule | torch.fx.Graph:
    """The same graph or module in torch.fx; `source` stays as it is.

    What `from_torch` says holds here too, the other way round.  Parameters of a
    function with nested inputs lose their defaults, which torch.fx cannot
    write.  Its code has some constants wrong, `(-1) ** x` becomes `-1 ** x`,
    and a path with a keyword of Python in it is a SyntaxError there.

    Args:
        source: a graph of fx, or a module that has one.

    Raises:
        TypeError: `source` is neither; the graph has a code generator of its
            own class.
        RuntimeError: a node is used before it is defined.

    Cost: O(nodes + size of their arguments).
    """
    if isinstance(source, Graph):
        return _graph_to_torch(source)
    if not isinstance(source, GraphModule):
        raise TypeError(
            "to_torch takes an fx.Graph or fx.GraphModule, not "
            f"{type(source).__qualname__}"
        )
    _warn_of_hooks(source)
    graph = _graph_to_torch(source.graph)
    is_guarded = hasattr(graph._codegen, "of_other_library")
    kind = _Guarded if is_guarded else torch.fx.GraphModule
    module = kind(source, graph, type(source).__name__)
    for path, part in module.named_modules():
        unsaved = source.get_submodule(path)._non_persistent_buffers_set
        part._non_persistent_buffers_set |= unsaved & part._buffers.keys()
    module.meta.update(source.meta)
    return module


class _Guarded(torch.fx.GraphModule):
    """A module of `fx.trace`, whose inputs or outputs are nested.

    Pickled as fx's: torch.fx pickles code, and not what it calls.
    """

    def __reduce__(self) -> AnyValue:
        """How to make it again."""
        return to_torch, (from_torch(self),)


def _warn_of_hooks(source: torch.nn.Module) -> None:
    """Warn of what runs besides the graph, but not of torch.export's hooks.

    Hooks are not taken over because they may rely on their module, as those
    of torch.export do, which read its `validate_inputs`.
    """
    hooks = [hook for path in HOOKS for hook in vars(source)[path].values()]
    exports = [f"{h.__module__}".startswith("torch.export") for h in hooks]
    if "forward" in vars(source) or not all(exports):
        frames.warn(
            f"{type(source).__name__} has "
            f"{' and '.join(beside_forward(source))}, which the new module "
            "does not get: set it there, too"
        )


def _graph_from_torch(old: torch.fx.Graph) -> Graph:
    """A graph of fx with the same nodes."""
    new = Graph()
    _copy_nodes(old, new, torch.fx.map_arg)
    codegen: AnyValue = old._codegen
    new.set_codegen(codegen_like(codegen))
    if type(codegen) is torch_fx.PyTreeCodeGen:
        new._pytree_info = PyTreeInfo(*codegen.pytree_info)
    return new


def _graph_to_torch(old: Graph) -> torch.fx.Graph:
    """A graph of torch.fx with the same nodes."""
    new = torch.fx.Graph()
    _copy_nodes(old, new, map_arg)
    if isinstance(old._codegen, _PyTreeCodeGen):
        for node in new.find_nodes(op="placeholder"):
            node.args = ()  # torch.fx writes a default into an assignment
    kinds = {ours: theirs for theirs, ours in _CODEGENS.items()}
    new.set_codegen(codegen_like(old._codegen, kinds))
    return new


def _copy_nodes(
    old: AnyValue, new: AnyValue, map_arg: Callable[..., AnyValue]
) -> None:
    """Make the nodes of a graph of one library in a graph of the other.

    The dict `meta` is copied, and the values in it are not: a node of the old
    graph that is one of them stays one, as in a copy of a graph.
    """
    copies: dict[object, AnyValue] = {}

    def copy_of(node: object) -> AnyValue:
        if node not in copies:
            raise RuntimeError(
                f"Argument '{node}' is used before it is defined: put the "
                "nodes in order first"
            )
        return copies[node]

    for node in old.nodes:
        args = map_arg(node.args, copy_of)
        kwargs = dict(map_arg(node.kwargs, copy_of))
        copy = new.create_node(
            node.op, node.target, args, kwargs, node.name, node.type
        )
        # Also one that `new` would have changed: each library has other names
        # that it does not give, and the node must be found by its name.
        copy.name = node.name
        copy.meta = dict(node.meta)
        copies[node] = copy


def codegen_like(
    codegen: AnyValue, kinds: dict[type, type] = _CODEGENS
) -> AnyValue:
    """A code generator of the other library that writes the same.

    A function that the user has set to edit the generated code goes along.
    """
    if hasattr(codegen, "of_other_library"):
        return codegen.of_other_library()
    make: AnyValue = kinds.get(type(codegen))
    if make is None:
        raise TypeError(
            "the graph's code generator is of the class "
            f"{type(codegen).__qualname__}, of which the other library has "
            "none: give the graph one of a known class first (set_codegen)"
        )
    if hasattr(codegen, "pytree_info"):
        ours = make is _PyTreeCodeGen
        info: AnyValue = PyTreeInfo if ours else torch_fx.PyTreeInfo
        new = make(info(*codegen.pytree_info))
    else:
        new = make()
    new._body_transformer = codegen._body_transformer
    return new
