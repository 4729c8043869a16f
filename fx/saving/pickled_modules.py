"""Stage 05, codegen: how a graph module is pickled: its class, then its state.

A pickle first makes an instance without attributes, by `reduce_graph_module`,
and then sets its state, of which `GraphModule.__setstate__` compiles the graph.
The class of an instance is for it alone and has no name to import; a pickle
names the nearest class that has one, and the name that the class had.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..text.pickling import importable
from ..usedef.values import Value
from .attributes import at_first, state_of

if TYPE_CHECKING:
    from ..graph_module import GraphModule

_CLASS: Final = "_graphmodule_cls"
_CLASS_NAME: Final = "_graphmodule_cls_name"


def reduced(gm: GraphModule) -> tuple[Value, ...]:
    """What `__reduce__` gives: how to begin, and the state."""
    bases = type(gm).__mro__
    known = next(base for base in bases if importable(base) is not None)
    return reduce_graph_module, ({_CLASS: known}, ""), gm.__getstate__()


def state_to_pickle(gm: GraphModule) -> dict[str, Value]:
    """The graph, its class's name, and what `recompile` does not make."""
    name = {_CLASS_NAME: type(gm).__name__, "_graph": gm.graph}
    return state_of(gm) | name


def attributes_of(state: dict[str, Value]) -> dict[str, Value]:
    """What of a state are attributes of the module."""
    made = "_graph", _CLASS_NAME
    return {name: state[name] for name in state if name not in made}


def class_name_of(state: dict[str, Value]) -> str:
    """The name of the class of what was pickled."""
    return str(state.get(_CLASS_NAME, "GraphModule"))


def reduce_graph_module(
    body: dict[str, Value], import_block: str
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
    from ..graph_module import GraphModule  # noqa: PLC0415

    new: GraphModule = object.__new__(body.get(_CLASS, GraphModule))
    vars(new).update(at_first())
    if "_graph" in body:
        new.__setstate__({key: body[key] for key in body if key != _CLASS})
    return new


# Pickles name the module that torch.fx has it in.
reduce_graph_module.__module__ = "fx.graph_module"
