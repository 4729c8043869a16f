"""Stage 02, use-def: which values are tensors, and which are new memory.

A graph says what is called, and not on what: `x.add(1)` may be the method of a
tensor or of a set.  So a value counts as a tensor only if something proves it,
for instance that an operator returned it.
"""

from __future__ import annotations

import operator
from typing import Final

import torch

from ..node import Node
from ..text.dotted_path import PathError, find
from ..text.qualified_names import _get_qualified_name, resolves_to
from ..usedef.values import Argument
from . import effect_tables as tables
from .facts import Facts, facts_of_overloads
from .function_effects import overloads_on_tensors
from .modules import foreign_code, returns_new_tensor

_ARITHMETIC: Final = frozenset(
    id(getattr(operator, name)) for name in tables.FRESH_OPERATORS
)
"""Functions of `operator` that give a new tensor for a tensor."""

_LIKE_FIRST: Final = _ARITHMETIC | {
    id(getattr(operator, name))
    for name in ("getitem", "pos", *tables.IN_PLACE_OPERATORS)
}
"""Functions of `operator` that give a tensor for a tensor, by id: a user's
callable may define `==`, or have no hash."""


def is_tensor(value: Argument, tensors: dict[Node, bool]) -> bool:
    """Whether a value is known to be a tensor.

    An input is one if its annotation or its `meta["val"]` says so.  What a
    method or an operator of Python returns is one if its object is one, so a
    chain of calls is followed to its beginning.

    Args:
        value: an argument of a node.
        tensors: the answers so far; those that are found on the way are
            added.

    Cost: O(length of the chain) the first time, then O(1).
    """
    chain: list[Node] = []
    answer = None
    while answer is None and isinstance(value, Node):
        answer = tensors.get(value)
        if answer is None:
            tensors[value] = False  # ends the walk if the graph is a circle
            chain.append(value)
            answer = _by_itself(value)
            value = _first(value)
    for node in chain:
        tensors[node] = bool(answer)
    return bool(answer)


def _first(node: Node) -> Argument:
    """The object of a method; of a function, the first argument of several.

    `2 * x` is a tensor because of x.
    """
    if node.op == "call_method":
        return node.args[0] if node.args else None
    return next((arg for arg in node.args if isinstance(arg, Node)), None)


def _by_itself(node: Node) -> bool | None:
    """Whether a node's value is a tensor; None if that depends on `_first`."""
    is_annotated = node.type is torch.Tensor or node.type is torch.nn.Parameter
    if is_annotated or isinstance(node.meta.get("val"), torch.Tensor):
        return True
    if node.op == "call_function":
        return _function_returns_tensor(node)
    if node.op == "call_method":
        return None if _schemas_return_tensor(node) else False
    value = _owned(node)
    return isinstance(value, torch.Tensor) or returns_new_tensor(value)


def _function_returns_tensor(node: Node) -> bool | None:
    """Whether a function is known to return one tensor."""
    target, first = node.target, _first(node)
    if target is operator.getitem and isinstance(first, Node):
        overloads = overloads_of(first) if first.op == "call_function" else []
        if overloads and not overloads[0].returns_one_tensor:
            # One of several results, as of `torch.chunk`.
            one = isinstance(node.args[-1], int)
            return one and all(each.returns_tensors for each in overloads)
    if id(target) in _LIKE_FIRST:
        return None
    has_schema = facts_of_overloads(target) is not None
    few = has_schema or len(node.args) <= _OF_POOL
    return few and _schemas_return_tensor(node)


def _schemas_return_tensor(node: Node) -> bool:
    """Whether all schemas of a call have one tensor as their result.

    A keyword that is in none of them, such as `as_tuple=`, is one of Python's,
    and may change what is returned.
    """
    overloads = overloads_of(node)
    known = {name for each in overloads for name in each.parameters}
    one = all(each.returns_one_tensor for each in overloads)
    return bool(overloads) and one and node.kwargs.keys() <= known


_OF_POOL: Final = 6
"""How many arguments a pool of torch.nn.functional has, besides
`return_indices`."""


def _owned(node: Node) -> object:
    """The module or value that a call_module or get_attr node names."""
    owner = node.graph.owning_module
    if node.op not in ("call_module", "get_attr") or owner is None:
        return None
    try:
        return find(owner, str(node.target))
    except PathError:
        return None


def is_torchs_module(node: Node) -> bool:
    """Whether a node calls a module in which only code of torch runs."""
    module = _owned(node)
    if not isinstance(module, torch.nn.Module):
        return False
    return next(foreign_code(module), None) is None


def overloads_of(node: Node) -> list[Facts]:
    """The overloads of torch's own operators that a call can mean.

    A function of torch.nn.functional that is written in Python counts as the
    operator of the same name, and a method as that of a tensor.
    """
    target: object = node.target
    if node.op == "call_method":
        target = getattr(torch.ops.aten, str(target), None)
    elif node.op != "call_function":
        return []
    elif facts_of_overloads(target) is None:
        text = _get_qualified_name(target)
        module, _, name = text.rpartition(".")
        if module != "torch.nn.functional" or not resolves_to(text, target):
            return []
        target = getattr(torch.ops.aten, name, None)
    return [each for each in overloads_on_tensors(target) if each.is_torchs]


def is_new(node: Node, tensors: dict[Node, bool]) -> bool:
    """Whether a call is known to return memory that it shares with nothing.

    Neither does it keep its inputs.  It may still have an effect.
    """
    if node.op == "call_module":
        module = _owned(node)
        in_place = getattr(module, "inplace", False)
        return not in_place and returns_new_tensor(module)
    if node.op == "call_method":
        base = str(node.target)
        return base in tables.FRESH and is_tensor(_first(node), tensors)
    if node.op != "call_function":
        return False
    if node.target is getattr:
        name = str(node.args[-1]) if len(node.args) == 2 else ""
        return name in tables.PLAIN_ATTRIBUTES
    if id(node.target) in _ARITHMETIC:
        return is_tensor(node, tensors)
    overloads = overloads_of(node)
    return bool(overloads) and overloads[0].base in tables.FRESH
