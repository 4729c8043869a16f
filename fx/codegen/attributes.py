"""Stage 05, codegen: a graph module's attributes, used, unused and copied.

The nodes say by their targets which attributes the code reads.  A copy of the
module gets all attributes, except those that `recompile` makes again.
"""

from __future__ import annotations

import copy
from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, Final

import torch
from torch import nn

from ..codegen import module_paths
from ..graph import Graph
from ..node import Node
from ..usedef import dotted_path
from ..usedef.parameters import is_own_self
from ..usedef.values import Value

if TYPE_CHECKING:
    from ..graph_module import GraphModule

_GENERATED: Final = frozenset(
    ("_graph", "_code", "_lineno_map", "_prologue_start")
)
"""The graph, and the attributes that `recompile` makes of it."""

SPECS: Final = frozenset(("_in_spec", "_out_spec"))
"""Attributes of a module that its code reads if inputs are nested."""

PRESERVED: Final = "_user_preserved_attributes"
"""Key of `meta`: a dict of attributes to set on a deep copy."""


# -- what the graph uses ---------------------------------------------------


def paths_in(nodes: Iterable[Node]) -> dict[str, Node]:
    """The dotted paths that nodes fetch or call, each with its first node.

    What is used is a place, not a module: one of two names of a module may be
    unused.  Everything below a called module is used.

    Cost: O(nodes).
    """
    paths: dict[str, Node] = {}
    for node in nodes:
        if node.op in ("get_attr", "call_module"):
            paths.setdefault(str(node.target), node)
    return paths


def fetched_from_self(
    nodes: Iterable[Node], root: object, own: Container[str]
) -> dict[str, Node]:
    """The attributes that a function of `self` reads of it, as `paths_in`.

    Such a function was traced on its own, and its first placeholder, `self`,
    is the module that runs the graph.

    Args:
        nodes: of the graph.
        root: which attributes it has.
        own: those that every graph module has.
    """
    paths: dict[str, Node] = {}
    for node in nodes:
        args = node.args
        if not args or not isinstance(args[0], Node):
            continue
        name: object = node.target if node.op == "call_method" else None
        if node.target is getattr and len(args) == 2:
            name = args[1]
        known = isinstance(name, str) and name not in own
        if known and is_own_self(args[0]) and hasattr(root, str(name)):
            paths.setdefault(str(name), node)
    return paths


def delete_unused(root: nn.Module, paths: Iterable[str]) -> None:
    """Remove the modules below `root` that no path leads through or into.

    Args:
        root: where the paths begin.
        paths: what is used. A module at the end of a path is used with
            everything inside it.

    Cost: O(length of the paths + modules).
    """
    used = _used_children(root, paths)
    seen: set[int] = set()
    rest = [root]
    while rest:
        module = rest.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        for name, child in list(module._modules.items()):
            if (id(module), name) not in used:
                delattr(module, name)
            elif child is not None:
                rest.append(child)


def _used_children(
    root: nn.Module, paths: Iterable[str]
) -> set[tuple[int, str]]:
    """Which child of which module is used: (id of the module, name).

    Not the child alone: a module may have two names, of which one is used.
    """
    used: set[tuple[int, str]] = set()
    seen: set[nn.Module] = set()
    for path in paths:
        value: object = root
        for step in dotted_path.walk(root, path):
            used.add((id(value), step.atom))
            value = step.value
        if isinstance(value, nn.Module):
            for _, module in value.named_modules(seen):
                children = module._modules.items()
                used.update((id(module), name) for name, _ in children)
    return used


# -- copies ------------------------------------------------------------------


def bare(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, without the attributes that a user may have given it."""
    grad = tensor.requires_grad
    if isinstance(tensor, nn.Parameter):
        return nn.Parameter(tensor.detach(), grad)
    return tensor.detach().requires_grad_(grad)


def state_of(gm: GraphModule) -> dict[str, Value]:
    """The attributes that `recompile` does not make."""
    generated = _GENERATED | gm.graph._codegen.module_attributes().keys()
    return {k: value for k, value in vars(gm).items() if k not in generated}


def at_first() -> dict[str, Value]:
    """What a graph module has before it has a graph."""
    hooks = "_replace", "_create_node", "_erase_node", "_deepcopy"
    return {
        **{"meta": {}, "_tracer_cls": None, "_tracer_extras": {}},
        **{f"{kind}_hooks": [] for kind in hooks},
    }


def take_state(new: GraphModule, root: nn.Module, graph: Graph) -> None:
    """Give `new` all attributes of `root`, and a graph."""
    vars(new).update(vars(root))
    new.graph = graph


def deep_copy(
    gm: GraphModule, new: GraphModule, memo: dict[int, Value]
) -> GraphModule:
    """Make `new` a copy of `gm`, as `copy.deepcopy` copies what is in it.

    Args:
        gm: the module to copy.
        new: an instance.
        memo: the copies so far, as `copy.deepcopy` has them.
    """
    memo[id(gm)] = new
    graph = copy.deepcopy(gm.graph, memo)
    state = copy.deepcopy(state_of(gm), memo)
    root = nn.Module()
    vars(root).update(state)
    gm._deepcopy_init()(new, root, graph)  # noqa: SLF001
    # The attributes that an overridden _deepcopy_init did not take.
    vars(new).update(state)
    for name, value in new.meta.get(PRESERVED, {}).items():
        setattr(new, name, value)
    for hook in [*new._deepcopy_hooks]:
        hook(new)
    return new


def shallow_copy(gm: GraphModule, new: GraphModule) -> GraphModule:
    """Make `new` a module with the attributes of `gm`, and give it the graph.

    Everything is shared, but modules that exist only to make a path are made
    again: a submodule added to the copy would appear in the original otherwise.

    Args:
        gm: the module to copy.
        new: an instance.
    """
    vars(new).clear()
    nn.Module.__init__(new)
    # Makes new modules on the way, which a submodule may be added to.
    module_paths.copy_attributes(gm, new, paths_in(gm.graph.nodes))
    attributes = vars(new)
    for name, value in state_of(gm).items():
        if name in ("_modules", "_parameters", "_buffers"):
            attributes[name] = {**value, **attributes[name]}
        elif name in attributes or name.endswith("_hooks"):
            attributes[name] = copy.copy(value)
        else:
            attributes[name] = value
    new.graph = gm.graph
    return new
