"""Extra: a graph module in a pickle: its class, then its state.

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

import copy
from typing import Final

from ...codegen.attributes import at_first, state_of
from ...graph_module import GraphModule, class_below
from ...recording import frames
from ...use_def.text import importable
from ...use_def.values import AnyValue

_CLASS: Final = "_graphmodule_cls"
_CHECKS: Final = "_guards_fn"
_CLASS_NAME: Final = "_graphmodule_cls_name"


def reduced(self: AnyValue) -> tuple[AnyValue, ...]:
    """Pickle the graph itself: names, types and meta survive.

    A class that is local to a function cannot be pickled, so its nearest base
    class that is not local is used. In torch.package, "fx.**" must be extern.
    """
    bases = type(self).__mro__
    body = {_CLASS: next(base for base in bases if importable(base))}
    return reduce_graph_module, (body, ""), self.__getstate__()


def state_to_pickle(self: GraphModule) -> dict[str, AnyValue]:
    """The graph, its class's name, and what `recompile` does not make."""
    name = {_CLASS_NAME: type(self).__name__, "_graph": self.graph}
    state = state_of(self) | name
    if _CHECKS in self._modules:  # torch.export's, a closure without a name
        frames.warn(
            "the checks of inputs that torch.export has put into the graph "
            "cannot be pickled, and are left out"
        )
        state["_graph"] = graph = copy.deepcopy(self.graph)
        for node in graph.find_nodes(op="call_module", target=_CHECKS):
            graph.erase_node(node)
        inside = state["_modules"].items()
        state["_modules"] = {k: m for k, m in inside if k != _CHECKS}
    if state["_tracer_cls"] is importable(self.graph._tracer_cls):
        del state["_tracer_cls"]  # which the graph has, too
    return state


def restore(self: GraphModule, state: dict[str, AnyValue]) -> None:
    """Set the attributes, and compile the graph."""
    if "_wrapped_call" not in vars(type(self)):
        self.__class__ = class_below(type(self))
        type(self).__name__ = str(state.get(_CLASS_NAME, "GraphModule"))
    not_held = "_graph", _CLASS_NAME
    tracer = importable(state["_graph"]._tracer_cls)
    attributes = {name: state[name] for name in state if name not in not_held}
    set_all: AnyValue = super(GraphModule, self).__setstate__
    set_all({"_tracer_cls": tracer} | attributes)
    self.graph = state["_graph"]


def reduce_graph_module(
    body: dict[str, AnyValue], import_block: str
) -> GraphModule:
    """Begin to unpickle a GraphModule, or make one of all its state.

    It is what `torch.load(weights_only=True)` asks you to allow, besides the
    classes that it names. What a pickle of a graph calls is not checked, so
    allow these only for files that you trust.

    Args:
        body: its class, and its state if nobody else sets that.
        import_block: not used; torch.fx imports what the code needs.

    Raises:
        RuntimeError: a state without a graph: there is only the code.

    torch.fx: graph_module.py, reduce_graph_module
    """
    if "_code" in body and "_graph" not in body:
        raise RuntimeError(
            "a pickle of fx has the graph, and no code is traced again: keep "
            "'_graph' in the state of the module"
        )
    module: GraphModule = object.__new__(body.get(_CLASS, GraphModule))
    vars(module).update(at_first())
    if "_graph" in body:
        set_state: AnyValue = module.__setstate__
        set_state({key: body[key] for key in body if key != _CLASS})
    return module


# Pickles name it as those of torch.fx do.
reduce_graph_module.__module__ = GraphModule.__module__
