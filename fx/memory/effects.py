"""Stage 02, use-def: what a node does besides computing its value.

A node whose value no other node uses can be removed, unless something else
would be lost with it.  `classify` says whether it would, in one of three words
and with the reason:

    pure      the value is all there is
    impure    an argument or some state is changed, or must be assumed to be
    unknown   the code that runs is a user's, or cannot be read

What a function or a method does is worked out in `function_effects`; here is
what follows for nodes, and what is known of modules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Literal

from torch import nn

from ..node import Node
from ..ordered.ordered_graph import OrderedGraph
from ..text.dotted_path import PathError, find
from ..usedef.values import Value
from .effect_tables import MODULE_EFFECTS
from .function_effects import (
    Effect,
    effect_of_function,
    effect_of_method,
    has_side_effect,
)

__all__ = ["Effect", "classify", "has_side_effect", "is_impure", "must_keep"]


def classify(node: Node) -> Effect:
    """Say what a node does besides computing its value, and how we know.

    Args:
        node: of any opcode.  A call_module node is read through the module
            that owns its graph, as that is now: in training or not.

    Cost: O(1) once a function or method has been seen; for a module,
    O(submodules), or O(nodes) if it has a graph.
    """
    if node.op == "call_function":
        return effect_of_function(node.target, node.args, node.kwargs)
    if node.op == "call_method":
        return effect_of_method(str(node.target), node.args, node.kwargs)
    if node.op == "call_module":
        return _effect_of_call_module(node)
    return _OF_OPCODE[node.op]


_OF_OPCODE: Final = {
    "placeholder": Effect("impure", "a parameter is part of the signature"),
    "output": Effect("impure", "the output is what the function returns"),
    "get_attr": Effect("pure", "reads an attribute"),
}


def is_impure(node: Node, impure_random: bool = True) -> bool:
    """Whether removing the node is known to change what the program does.

    Args:
        node: of any opcode; placeholders and the output are never removable.
        impure_random: count it as an effect that an operator of torch.ops
            draws random numbers.  Other functions, methods and modules that
            draw are impure either way.

    torch.fx: node.py, Node.is_impure
    """
    effect = classify(node)
    return effect.kind == "impure" and (impure_random or not effect.only_draws)


def must_keep(unknown: Literal["drop", "keep"]) -> Callable[[Node], bool]:
    """The predicate by which dead code elimination keeps unused nodes.

    Args:
        unknown: "drop" keeps what is impure, as torch.fx does; "keep" keeps
            all that is not pure.

    Raises:
        ValueError: `unknown` is another word.
    """
    if unknown == "drop":
        return is_impure
    if unknown == "keep":
        return lambda node: classify(node).kind != "pure"
    raise ValueError(f'unknown={unknown!r}: say unknown="drop" or "keep"')


# -- modules -----------------------------------------------------------------


def _effect_of_call_module(node: Node) -> Effect:
    """The effect of a call_module node."""
    if node.graph.owning_module is None:
        return Effect("unknown", "the graph has no module to look into")
    try:
        module = find(node.graph.owning_module, str(node.target))
    except PathError as error:
        return Effect("unknown", str(error))
    return _effect_of_module(module)


def _effect_of_module(module: Value) -> Effect:
    """The effect of calling a module: the worst of all its parts."""
    name = type(module).__qualname__
    if getattr(module, "_is_impure", False):
        return Effect("impure", f"{name} says so: _is_impure is set")
    graph: Value = getattr(module, "graph", None)
    if isinstance(graph, OrderedGraph):
        nothing = f"nothing in the graph of {name} has an effect"
        return _worst(nothing, _effects_in_graph(graph))
    where = f"{type(module).__module__}."
    if isinstance(module, nn.Module) and where.startswith(_OF_TORCH):
        return _worst(f"{name} changes nothing", _effects_in_module(module))
    return Effect("unknown", f"{name} is not of torch.nn, and has no graph")


_OF_TORCH: Final = ("torch.nn.modules.", "torch.nn.utils.")
"""Where the classes of modules are defined that do what they are told."""


def _effects_in_graph(graph: Value) -> Iterator[tuple[str, Effect]]:
    """The effects of a graph's nodes, parameters and output aside."""
    for node in graph.nodes:
        if node.op not in ("placeholder", "output"):
            yield f"{node.name}: ", classify(node)


def _effects_in_module(module: nn.Module) -> Iterator[tuple[str, Effect]]:
    """The effects of a module of torch.nn itself, then of its children."""
    name = type(module).__qualname__
    for cls, applies, what in MODULE_EFFECTS:
        if isinstance(module, cls) and applies(module):
            yield "", Effect("impure", f"{name} {what}")
    for kind in ("_forward_pre_hooks", "_forward_hooks"):
        if getattr(module, kind):
            yield "", Effect("unknown", f"{name} has forward hooks")
    if "forward" in vars(module):
        yield "", Effect("unknown", f"{name} has a forward of its own")
    for path, child in module.named_children():
        yield f"{path}: ", _effect_of_module(child)


def _worst(pure: str, parts: Iterable[tuple[str, Effect]]) -> Effect:
    """The first impure effect, else the first unknown one, else pure."""
    worst = Effect("pure", pure)
    for path, effect in parts:
        if effect.kind == "impure":
            return Effect("impure", f"{path}{effect.reason}")
        if effect.kind == "unknown" and worst.kind == "pure":
            worst = Effect("unknown", f"{path}{effect.reason}")
    return worst
