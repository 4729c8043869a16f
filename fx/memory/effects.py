"""Stage 02, use-def: what a node does besides computing its value.

A node whose value no other node uses can be removed, unless something else
would be lost with it.  `classify` says whether it would, in one of three words
and with the reason:

    pure      the value is all there is
    impure    an argument or some state is changed, or must be assumed to be
    unknown   the code that runs is a user's, or cannot be read

What a function or a method does is worked out in `function_effects`, and what
a module of torch.nn does in `modules`; here is what follows for nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from torch import nn

from ..node import Node
from ..text.dotted_path import PathError, find
from ..usedef.protocols import CodeGenerator
from ..usedef.values import Value
from .function_effects import (
    Effect,
    effect_of_function,
    effect_of_method,
    has_side_effect,
)
from .modules import effects_of_module, foreign_code, hooks_of, overwritten
from .tensors import is_tensor

__all__ = ["Effect", "classify", "has_side_effect", "is_impure"]


def classify(node: Node, tensors: dict[Node, bool] | None = None) -> Effect:
    """Say what a node does besides computing its value, and how we know.

    A method is known only if its object is known to be a tensor, because a
    queue has a `put` too, and a set an `add`: see `tensors.is_tensor`.

    Args:
        node: of any opcode.  A call_module node is read through the module
            that owns its graph, as that is now: in training or not.
        tensors: what is known already about the nodes of the graph; more is
            noted here.  Give the same dict again to ask about many nodes.

    Cost: O(1) once a function has been seen; for a method, O(length of the
    chain of calls that it ends) if `tensors` is empty; for a module,
    O(submodules), or O(nodes) if it has a graph.
    """
    effect = effect_by_name(node)
    if node.op != "call_method" or effect.kind != "pure":
        return effect
    receiver = node.args[0] if node.args else None
    if is_tensor(receiver, {} if tensors is None else tensors):
        return effect
    reason = f"`.{node.target}()` of what may be no tensor"
    return Effect("unknown", reason)


def effect_by_name(node: Node) -> Effect:
    """What a node does if the object of its method, if any, is a tensor."""
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
    effect = effect_by_name(node)
    return effect.kind == "impure" and (impure_random or not effect.only_draws)


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
    name = type(module).__name__
    if getattr(module, "_is_impure", False):
        return Effect("impure", f"{name} says so: _is_impure is set")
    if not isinstance(module, nn.Module):
        return Effect("unknown", f"{name} is not of torch.nn")
    nodes = _nodes_run_by(module)
    if nodes is not None:
        nothing = f"nothing in the graph of {name} has an effect"
        return _worst(
            nothing, chain(_effects_of_nodes(nodes), hooks_of(module))
        )
    parts = chain(effects_of_module(module), foreign_code(module))
    effect = _worst(f"{name} changes nothing", parts)
    return effect._replace(target=overwritten(module, effect))


def _nodes_run_by(module: Value) -> Sequence[Node] | None:
    """The nodes from which a module's forward was written, if it was.

    An attribute `graph` does not prove it.  These are the nodes of the last
    `recompile`, which runs until the next one.
    """
    own = vars(type(module))
    compiled = getattr(own.get("_wrapped_call"), "compiled", None)
    if compiled is None or own.get("forward") is not compiled.forward:
        return None
    nodes: Sequence[Node] = compiled.nodes
    bases = type(module).__mro__[1:]
    call = next(cls for cls in bases if "__call__" in vars(cls))
    codegen: CodeGenerator[Node] = module.graph._codegen
    is_edited = codegen._body_transformer is not None  # noqa: SLF001
    plain = call is nn.Module and "forward" not in vars(module)
    return nodes if plain and not is_edited else None


def _effects_of_nodes(nodes: Sequence[Node]) -> Iterator[tuple[str, Effect]]:
    """The effects of a graph's nodes, parameters and output aside."""
    tensors: dict[Node, bool] = {}
    for node in nodes:
        if node.op not in ("placeholder", "output"):
            yield node.name, classify(node, tensors)


def _worst(pure: str, parts: Iterable[tuple[str, Effect]]) -> Effect:
    """The first impure effect, else the first unknown one, else pure."""
    worst = Effect("pure", pure)
    for path, effect in parts:
        if effect.kind == "pure" or effect.kind == worst.kind:
            continue
        reason = f"{path}: {effect.reason}" if path else effect.reason
        worst = Effect(effect.kind, reason)
        if effect.kind == "impure":
            break
    return worst
