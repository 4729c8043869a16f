"""Stage 07, rewriter: one form for all the ways to write a call.

`x + 1`, `torch.add(x, 1)`, `torch.add(input=x, other=1)` and `x.add(1)` are
one operation to whoever wrote them.  Here each gets the same `Form`: the
operator's name and its arguments by the names of its schema, defaults left
out.  `Normalized` compares calls by it.
"""

from __future__ import annotations

import functools
import inspect
import operator
from typing import Final, NamedTuple

import torch
from torch import nn
from torch._ops import OpOverload

from ..memory.facts import Facts, builtin_name, facts_of_overloads
from ..memory.signatures import python_signature
from ..node import Node
from ..text.dotted_path import PathError, find
from ..text.qualified_names import resolves_to
from ..usedef.values import Argument, Value
from .pattern_steps import Exact, Key, Pair, fetched

PYTHON_OPERATORS: Final[dict[object, str]] = {
    operator.add: "add",
    operator.sub: "sub",
    operator.mul: "mul",
    operator.truediv: "div",
    operator.floordiv: "floor_divide",
    operator.mod: "remainder",
    operator.pow: "pow",
    operator.matmul: "matmul",
    operator.neg: "neg",
    operator.abs: "abs",
    abs: "abs",
    operator.eq: "eq",
    operator.ne: "ne",
    operator.lt: "lt",
    operator.le: "le",
    operator.gt: "gt",
    operator.ge: "ge",
}
"""Python's operators -> the operator of torch that they are for tensors."""

COMMUTATIVE: Final = frozenset(("add", "mul", "eq", "ne", "maximum", "minimum"))
"""Operators whose two operands may be exchanged."""

SAME_AS: Final = {
    "multiply": "mul",
    "subtract": "sub",
    "divide": "div",
    "true_divide": "div",
    "negative": "neg",
    "absolute": "abs",
}
"""Operators that torch has under two names."""

SIZES: Final = frozenset(
    ("view", "reshape", "permute", "expand", "repeat", "flip", "tile")
)
"""Methods that take sizes one by one as well as in a tuple."""


class Form(NamedTuple):
    """A call in the one form that all its spellings share.

    Attributes:
        name: the operator's name: "add".
        names: the parameters that are given something but their default.
        values: what they are given.
    """

    name: str
    names: tuple[str, ...]
    values: tuple[Argument, ...]


class Normalized(Exact):
    """Sees through the spelling of calls, and at what modules and tensors are.

    Each of its three abilities is asked for by itself: see `MatchOptions`.
    """

    def __init__(
        self,
        *,
        normalize: bool = False,
        compare_constants: bool = False,
        modules_by_class: bool = False,
    ) -> None:
        """Choose what to see through."""
        self.normalize = normalize
        self.compare_constants = compare_constants
        self.modules_by_class = modules_by_class

    def key(self, node: Node) -> Key:
        """The operator's name, the module's class, or what `Exact` says."""
        if self.normalize:
            name = operator_name(node)
            if name:
                return ("operator", name)
        if self.modules_by_class and node.op == "call_module":
            return ("module", _class_of(node))
        return super().key(node)

    def pair(self, pattern: Node, node: Node) -> Pair | None:
        """The arguments of both calls by the same names."""
        if pattern.op == node.op == "call_module" and self.modules_by_class:
            if self.key(pattern) != self.key(node):
                return None
            if [*pattern.kwargs] != [*node.kwargs]:
                return None
            return (
                (*pattern.args, *pattern.kwargs.values()),
                (*node.args, *node.kwargs.values()),
            )
        ours = form(node) if self.normalize else None
        theirs = form(pattern) if self.normalize else None
        if ours is None or theirs is None:
            return super().pair(pattern, node)
        if (ours.name, ours.names) == (theirs.name, theirs.names):
            return theirs.values, ours.values
        # One of them may spell a default out for which the other has a node.
        return super().pair(pattern, node)

    def commutes(self, pattern: Node) -> bool:
        """Whether it is a commutative operator with its two operands."""
        found = form(pattern) if self.normalize else None
        if found is None or len(found.values) != 2:
            return False
        return found.name in COMMUTATIVE

    def same_value(self, pattern: Node, node: Node) -> bool:
        """As `Exact` says, and equal if constants are compared."""
        if not super().same_value(pattern, node):
            return False
        return not self.compare_constants or _same_tensor(
            fetched(pattern), fetched(node)
        )


def _same_tensor(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors agree in dtype, device, shape and each value."""
    if (one.dtype, one.device) != (other.dtype, other.device):
        return False
    return torch.equal(one, other)


def _class_of(node: Node) -> Value:
    """The class of the module that a call_module node calls, if known."""
    try:
        return type(find(node.graph.owning_module, str(node.target)))
    except PathError:
        return None


def operator_name(node: Node) -> str:
    """The name of the operator that a node calls, "" if there is none."""
    if node.op == "call_function":
        return _name_of_function(node.target)
    if node.op == "call_method":
        return _name_of_method(str(node.target))
    return ""


@functools.lru_cache(maxsize=4096)
def _name_of_function(target: Value) -> str:
    """The operator's name of a function; "" if it is none."""
    found = PYTHON_OPERATORS.get(target, "")
    if not found and isinstance(target, OpOverload):
        found = target._schema.name.removeprefix("aten::")
    elif not found:
        found = _name_in_torch(target)
    found = SAME_AS.get(found, found)
    return found if _overloads(found) else ""


def _name_in_torch(target: Value) -> str:
    """The name of a function of torch that has an operator's name."""
    name = str(getattr(target, "__name__", ""))
    for path in (f"torch.{name}", f"torch.nn.functional.{name}"):
        if name and resolves_to(path, target):
            return (builtin_name(target) or name).removeprefix("aten::")
    return ""


@functools.lru_cache(maxsize=1024)
def _name_of_method(name: str) -> str:
    """The operator's name of a tensor's method; "" if it is none."""
    if not hasattr(torch.Tensor, name):
        return ""
    name = SAME_AS.get(name, name)
    return name if _overloads(name) else ""


def _overloads(name: str) -> list[Facts]:
    """The facts of all overloads of an operator; none if unknown."""
    if not name.isidentifier() or name.endswith("_"):
        return []
    return facts_of_overloads(getattr(torch.ops.aten, name, None)) or []


def form(node: Node) -> Form | None:
    """The one form of a call; None if it calls no operator that is known."""
    name = operator_name(node)
    if not name:
        return None
    args, kwargs = node.args, node.kwargs
    if node.op == "call_method" and name in SIZES and len(args) > 2:
        args = (args[0], args[1:])
    own = _own_signature(node.target)
    declared = (facts.signature for facts in _overloads(name))
    for signature in (own,) if own else declared:
        given = _given(signature, args, kwargs)
        if given is not None:
            return Form(name, tuple(given), tuple(given.values()))
    return None


def _own_signature(target: Value) -> inspect.Signature | None:
    """The signature of a function of torch that is written in Python."""
    return python_signature(target) if inspect.isfunction(target) else None


def _given(
    signature: inspect.Signature,
    args: tuple[Argument, ...],
    kwargs: dict[str, Argument],
) -> dict[str, Argument] | None:
    """The arguments by name, without those that are the default anyway.

    None if they do not fit. The first is called `input` in some places and
    `self` in others: here `self`.
    """
    parameters = signature.parameters
    named = dict(kwargs)
    for one, other in (("input", "self"), ("self", "input")):
        if one in named and one not in parameters and other in parameters:
            named[other] = named.pop(one)
    try:
        bound = signature.bind(*args, **named).arguments
    except TypeError:
        return None
    return {
        "self" if key == "input" else key: value
        for key, value in bound.items()
        if not _is_default(value, parameters[key].default)
    }


def _is_default(value: Argument, default: object) -> bool:
    """Whether an argument is the parameter's default, spelled out."""
    if isinstance(value, (Node, torch.Tensor, nn.Module)):
        return False
    return type(value) is type(default) and value == default
