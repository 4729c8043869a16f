"""Stage 05, codegen: a graph module's attributes, used, unused and copied.

The nodes say by their targets which attributes the code reads.  A copy of the
module gets all attributes, except those that `recompile` makes again.
"""

from __future__ import annotations

import copy
from collections.abc import Container, Iterable, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Final

import torch
from torch import nn

from ..graph import Graph
from ..node import Node
from ..use_def.dotted_path import MISSING, path_error, walk
from ..use_def.lint import is_own_self
from ..use_def.values import AnyValue

if TYPE_CHECKING:
    from ..graph_module import GraphModule


def assign(
    root: nn.Module, path: str, value: object, *, persistent: bool = True
) -> None:
    """Put `value` at `path`; empty modules are installed on the way.

    A tensor becomes a buffer, by default a persistent one, unless it is a
    Parameter or what it is put into is not a module.

    Raises:
        KeyError: a tensor is to replace what is not a buffer.

    torch.fx: graph_module.py, _assign_attr
    """
    *prefix, field = path.split(".")
    _store(reduce(_enter, prefix, root), field, value, persistent=persistent)


def copy_attributes(
    source: nn.Module, destination: nn.Module, paths: Iterable[str]
) -> None:
    """Put what `source` has at each path into `destination`, at the same path.

    The objects themselves are shared, not copied.  Empty modules are installed
    on the way, and a tensor becomes a buffer, as `assign` does; one that is a
    non-persistent buffer of `source` stays so.  If both modules already share
    a part of a path, the rest is shared with it and nothing is done.

    Raises:
        PathError: `source` has nothing at a path; nothing is done for it.
        KeyError: a tensor is to replace what is not a buffer.

    Cost: O(atoms of the paths).
    """
    for path in paths:
        *prefix, field = path.split(".")
        holder = reduce(_look, prefix, source)
        value = _look(holder, field)
        if value is MISSING:
            raise path_error(source, path)
        new_holder = reduce(_enter, prefix, destination)
        if new_holder is holder:
            continue
        if isinstance(value, nn.Module):
            setattr(new_holder, field, value)
        else:
            passing = getattr(holder, "_non_persistent_buffers_set", ())
            _store(new_holder, field, value, persistent=field not in passing)


def _look(holder: AnyValue, atom: str) -> AnyValue:
    """What is to be copied from `holder`, or MISSING.

    A child is found although an attribute of the class of `holder` hides it,
    and in less time than `getattr` takes.
    """
    if isinstance(holder, nn.Module) and atom not in vars(holder):
        children: Mapping[str, object] = getattr(holder, "_modules", {})
        if atom in children:
            return children[atom]
    return getattr(holder, atom, MISSING)


def _enter(holder: AnyValue, atom: str) -> AnyValue:
    """What `holder` has under `atom`: an empty new module, if nothing."""
    value = getattr(holder, atom, None)
    if value is None:
        value = nn.Module()
        setattr(holder, atom, value)
    return value


def _store(
    holder: object, field: str, value: object, *, persistent: bool = True
) -> None:
    """Set an attribute; a module's plain tensors go among its buffers."""
    if (
        isinstance(value, torch.Tensor)
        and not isinstance(value, nn.Parameter)
        and isinstance(holder, nn.Module)
    ):
        holder.register_buffer(field, value, persistent=persistent)
    else:
        setattr(holder, field, value)


def add_submodule(root: nn.Module, path: str, module: nn.Module) -> bool:
    """Install `module` at `path`; empty modules are installed on the way.

    Returns:
        False, and nothing is changed, if something on the way is not one.

    Raises:
        KeyError: `path` ends at an attribute that is not a module.

    torch.fx: graph_module.py, GraphModule.add_submodule
    """
    *prefix, field = path.split(".")
    parent = root
    for atom in prefix:
        child = _enter(parent, atom)
        if not isinstance(child, nn.Module):
            return False
        parent = child
    parent.add_module(field, module)
    return True


def delete_submodule(root: nn.Module, path: str) -> bool:
    """Remove the module at `path`.

    Returns:
        Whether there was one: False if something on the way, or at the end,
        is missing or no module.

    torch.fx: graph_module.py, GraphModule.delete_submodule
    """
    steps = list(walk(root, path))
    if not all(isinstance(step.value, nn.Module) for step in steps):
        return False
    parent = steps[-2].value if len(steps) > 1 else root
    delattr(parent, steps[-1].atom)
    return True


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
    # Which child of which module is used, and not the child alone: a module may
    # have two names, of which one is used.
    used: set[tuple[int, str]] = set()
    inside: set[nn.Module] = set()
    for path in paths:
        value: object = root
        for step in walk(root, path):
            used.add((id(value), step.atom))
            value = step.value
        if isinstance(value, nn.Module):
            for _, module in value.named_modules(inside):
                children = module._modules.items()
                used.update((id(module), name) for name, _ in children)
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


# -- copies ------------------------------------------------------------------


def state_of(gm: GraphModule) -> dict[str, AnyValue]:
    """The attributes that `recompile` does not make."""
    generated = _GENERATED | gm.graph._codegen.module_attributes().keys()
    return {k: value for k, value in vars(gm).items() if k not in generated}


def at_first() -> dict[str, AnyValue]:
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
    gm: GraphModule, new: GraphModule, memo: dict[int, AnyValue]
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
    copy_attributes(gm, new, paths_in(gm.graph.nodes))
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
