"""Stage 05, codegen: copies of a graph module, with all its attributes.

What `recompile` makes is made again for a copy; everything else that the
module has is the user's, and is copied or shared.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final

from torch import nn

from ..codegen.variants import SPECS, _PyTreeCodeGen
from ..graph import Graph
from ..text import dotted_path
from ..usedef.values import Value
from .used_attributes import paths_in

if TYPE_CHECKING:
    from ..graph_module import GraphModule

_GENERATED: Final = frozenset(
    ("_graph", "_code", "_lineno_map", "_prologue_start")
)
"""The graph, and the attributes that `recompile` makes of it."""

_PRESERVED: Final = "_user_preserved_attributes"
"""Key of `meta`: a dict of attributes to set on a deep copy."""


def state_of(gm: GraphModule) -> dict[str, Value]:
    """The attributes that `recompile` does not make."""
    made = _GENERATED
    if isinstance(gm.graph._codegen, _PyTreeCodeGen):
        made |= SPECS
    return {name: held for name, held in vars(gm).items() if name not in made}


def take_state(new: GraphModule, root: nn.Module, graph: Graph) -> None:
    """Give `new` all attributes of `root`, and a graph."""
    vars(new).update(vars(root))
    new.graph = graph


def deep_copy(
    gm: GraphModule, new: GraphModule, memo: dict[int, Value]
) -> GraphModule:
    """Make `new` a copy of `gm` that shares nothing with it.

    Args:
        gm: the module to copy.
        new: an instance without attributes.
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
    for name, value in new.meta.get(_PRESERVED, {}).items():
        setattr(new, name, value)
    for hook in new._deepcopy_hooks:
        hook(new)
    return new


def shallow_copy(gm: GraphModule, new: GraphModule) -> GraphModule:
    """Make `new` a module with the attributes of `gm`, and give it the graph.

    Args:
        gm: the module to copy.
        new: an instance without attributes.
    """
    nn.Module.__init__(new)
    # Makes new modules on the way, which a submodule may be added to.
    for path in paths_in(gm.graph.nodes):
        dotted_path.copy_attribute(gm, new, path)
    held = vars(new)
    for name, value in state_of(gm).items():
        if name in ("_modules", "_parameters", "_buffers"):
            held[name] = {**value, **held[name]}
        elif name in held or name.endswith("_hooks"):
            held[name] = copy.copy(value)
        else:
            held[name] = value
    new.graph = gm.graph
    return new
