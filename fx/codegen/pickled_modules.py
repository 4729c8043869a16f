"""Stage 05, codegen: how a graph module is pickled: its class, then its state.

A pickle first makes an instance without a graph, by `reduce_graph_module`, and
then sets its state, of which `GraphModule.__setstate__` compiles the graph.
The class of an instance is for it alone and has no name to import; a pickle
names the nearest class that has one, and the name that the class had.

torch.fx pickles the code and traces it again.  Here the graph itself is
pickled, with its names, types and `meta`.  `torch.load(weights_only=True)` sets
a state only if its class is one that the user allowed, which a class that was
just made cannot be: so an instance begins as one of the base class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..usedef.qualified_names import importable
from ..usedef.values import Value
from .attributes import at_first, state_of

if TYPE_CHECKING:
    from ..graph_module import GraphModule

_CLASS: Final = "_graphmodule_cls"
_CLASS_NAME: Final = "_graphmodule_cls_name"


def beginning(cls: type[GraphModule]) -> dict[str, Value]:
    """What a pickle has to make an instance, before it sets the state."""
    bases = cls.__mro__
    return {_CLASS: next(base for base in bases if importable(base))}


def state_to_pickle(gm: GraphModule) -> dict[str, Value]:
    """The graph, its class's name, and what `recompile` does not make."""
    name = {_CLASS_NAME: type(gm).__name__, "_graph": gm.graph}
    state = state_of(gm) | name
    if state["_tracer_cls"] is importable(gm.graph._tracer_cls):
        del state["_tracer_cls"]  # which the graph has, too
    return state


def attributes_of(state: dict[str, Value]) -> dict[str, Value]:
    """What of a state are attributes of the module."""
    not_held = "_graph", _CLASS_NAME
    tracer = importable(state["_graph"]._tracer_cls)
    attributes = {name: state[name] for name in state if name not in not_held}
    return {"_tracer_cls": tracer} | attributes


def class_name_of(state: dict[str, Value]) -> str:
    """The name of the class of what was pickled."""
    return str(state.get(_CLASS_NAME, "GraphModule"))


def unpickled(body: dict[str, Value], cls: type[GraphModule]) -> GraphModule:
    """A module at the beginning of unpickling, or of all its state.

    Args:
        body: as `reduce_graph_module` takes it.
        cls: the class, if the body names none.

    Raises:
        RuntimeError: a state without a graph: there is only the code.
    """
    if "_code" in body and "_graph" not in body:
        raise RuntimeError(
            "a pickle of fx has the graph, and no code is traced again: keep "
            "'_graph' in the state of the module"
        )
    new: GraphModule = object.__new__(body.get(_CLASS, cls))
    vars(new).update(at_first())
    if "_graph" in body:
        new.__setstate__({key: body[key] for key in body if key != _CLASS})
    return new
