"""Stage 07, rewriter: a canonical form for calls, to compare them by meaning.

`x + 1`, `torch.add(x, 1)`, `torch.add(input=x, other=1)` and `x.add(1)` are
four ways to write one operation.  `form` gives all of them the same `Form`:
the operator's name, and the arguments by the names of its schema, defaults
left out.  `Normalized` compares calls by that form.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from inspect import isfunction
from typing import Final, NamedTuple

import torch
from torch._ops import OpOverload

from ..memory.effects import overloads_of, owned
from ..memory.facts import Facts, builtin_name, facts_of_overloads
from ..memory.signatures import python_signature
from ..node import Node
from ..text.qualified_names import resolves_to
from ..usedef.arguments import parts
from ..usedef.values import LEAVES, Argument, Value
from .patterns import Exact, Key, MatchOptions, Pair, fetched, side_by_side

PYTHON_OPERATORS: Final[dict[object, str]] = {
    getattr(operator, name): name
    for name in "add sub mul pow matmul neg abs eq ne lt le gt ge".split()
} | {
    abs: "abs",
    operator.truediv: "div",
    operator.floordiv: "floor_divide",
    operator.mod: "remainder",
}
"""Python's operators -> the operator of torch that they call on tensors."""

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
"""Operators of torch that have a second name -> the first."""

SIZES: Final = frozenset(
    ("view", "reshape", "permute", "expand", "repeat", "flip", "tile")
)
"""Methods that take sizes one by one as well as in a tuple."""


_NO_TENSORS: Final = (int, float, complex, tuple)

_OF_SIZES: Final = frozenset("dim item nelement numel size".split())
"""Methods of tensors that give a number or a tuple of numbers."""

_MOST_STEPS: Final = 32
"""How far back it is asked where an operand comes from."""


class Form(NamedTuple):
    """The canonical form of a call, which equivalent calls share.

    Attributes:
        name: the operator's name: "add".
        names: the parameters that are given something but their default.
        values: what they are given.
    """

    name: str
    names: tuple[str, ...]
    values: tuple[Argument, ...]


class Normalized(Exact):
    """Compares calls by meaning, modules by class, or tensors by value.

    Each of the three is asked for by itself: see `MatchOptions`.
    """

    def __init__(self, options: MatchOptions) -> None:
        """Choose what to compare in which way."""
        self.normalize: bool = options.get("normalize", False)
        self.compare_constants: bool = options.get("compare_constants", False)
        self.modules_by_class: bool = options.get("modules_by_class", False)

    def key(self, node: Node) -> Key:
        """The operator's name, the module's class, or the key of `Exact`."""
        if self.normalize:
            name = operator_name(node)
            if name:
                return ("operator", name)
        if self.modules_by_class and node.op == "call_module":
            return ("module", type(owned(node)))
        return super().key(node)

    def pair(self, pattern: Node, node: Node) -> Pair | None:
        """The arguments of both calls, or None if they are not equivalent."""
        if pattern.op == node.op == "call_module" and self.modules_by_class:
            if self.key(pattern) != self.key(node):
                return None
            return side_by_side(pattern, node)
        ours = form(node) if self.normalize else None
        theirs = form(pattern) if ours else None
        if ours and theirs and ours[:2] == theirs[:2]:  # name and names
            return theirs.values, ours.values
        # One may pass a default explicitly where the other passes a node.
        return super().pair(pattern, node)

    def commutes(self, pattern: Node) -> bool:
        """Whether it is a commutative operator with its two operands."""
        found = form(pattern) if self.normalize else None
        if found is None or len(found.values) != 2:
            return False
        tuples = any(map(_may_be_tuple, found.values))
        return found.name in COMMUTATIVE and not tuples

    def same_value(self, pattern: Node, node: Node) -> bool:
        """Whether two get_attr nodes fetch tensors of one class, or equal."""
        if not super().same_value(pattern, node):
            return False
        return not self.compare_constants or _same_tensor(
            fetched(pattern), fetched(node)
        )


def _may_be_tuple(value: Argument) -> bool:
    """Whether an operand is a tuple or list, or a call that may give one."""
    if not isinstance(value, Node):
        return isinstance(value, tuple | list)
    one = all(facts.returns_one_tensor for facts in overloads_of(value))
    return not one or value.target is getattr  # x.shape


def is_no_tensor(value: Argument) -> bool:
    """Whether an operand is known to be a number or a tuple of numbers.

    Known are sizes and the like, and what Python's operators make of them.

    Cost: O(1): of a long calculation, only some steps are looked at.
    """
    ahead: list[Value] = [value]
    for _ in range(_MOST_STEPS):
        if not ahead:
            return True
        one = ahead.pop()
        is_node = isinstance(one, Node)
        kind = one.meta.get("type", one.type) if is_node else type(one)
        if isinstance(kind, type):
            known = issubclass(kind, _NO_TENSORS)
        elif one.target in PYTHON_OPERATORS:
            known = True
            ahead += one.args
        elif one.target is operator.getitem:
            known = True
            ahead += one.args[:1]
        elif one.target is getattr:
            known = one.args[1:] in (("shape",), ("ndim",))
        else:
            known = one.op == "call_method" and one.target in _OF_SIZES
        if not known:
            return False
    return False


def operator_name(node: Node) -> str:
    """The name of the operator of torch that a node calls, or "".

    Python's operators on numbers and tuples are not those of torch.
    """
    if node.op == "call_function":
        if node.target in PYTHON_OPERATORS and all(
            map(is_no_tensor, node.args)
        ):
            return ""
        return _name_of_function(node.target)
    if node.op == "call_method":
        return _name_of_method(str(node.target))
    return ""


@functools.lru_cache(maxsize=4096)
def _name_of_function(target: Value) -> str:
    """The name of the operator that a function calls, or ""."""
    if isinstance(target, OpOverload):
        found = target._schema.name.removeprefix("aten::")
    else:
        found = PYTHON_OPERATORS.get(target) or _name_in_torch(target)
    found = SAME_AS.get(found, found)
    overloads = _overloads(found)
    if not overloads or isinstance(target, OpOverload):
        return found if overloads else ""
    if isfunction(target):
        more = _means_more(target, overloads)
        return f"torch.nn.functional.{found}" if more else found
    # Its default for `reduction` is another one than its schema says.
    reduces = any("reduction" in facts.parameters for facts in overloads)
    return "" if reduces else found


def _means_more(function: Callable[..., Value], overloads: list[Facts]) -> bool:
    """Whether a function of Python is another one than its operator.

    `F.kl_div` takes the mean, which `torch.kl_div` does not. And
    `F.adaptive_max_pool1d` leaves out the indices.
    """
    own = python_signature(function)
    names = own.parameters if own is not None else ()
    one = all(facts.returns_one_tensor for facts in overloads)
    return "reduction" in names or ("return_indices" in names and not one)


def _name_in_torch(target: Value) -> str:
    """The name of a function of torch that has an operator's name."""
    name = str(getattr(target, "__name__", ""))
    for path in (f"torch.{name}", f"torch.nn.functional.{name}"):
        if name and resolves_to(path, target):
            return (builtin_name(target) or name).removeprefix("aten::")
    return ""


@functools.lru_cache(maxsize=1024)
def _name_of_method(name: str) -> str:
    """The name of the operator that a method of tensors calls, or ""."""
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
    """The canonical form of a call; None if its operator is not known."""
    name = operator_name(node)
    if not name:
        return None
    args, kwargs = node.args, node.kwargs
    if node.op == "call_method" and name in SIZES and len(args) > 2:
        args = (args[0], args[1:])
    own = python_signature(node.target) if isfunction(node.target) else None
    declared = (facts.signature for facts in _overloads(name))
    for signature in (own,) if own else declared:
        given = _given(signature, args, kwargs)
        if given is not None:
            return Form(name, tuple(given), tuple(given.values()))
    return None


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
        if not equal_constants(value, parameters[key].default)
    }


def equal_constants(sought: Argument, found: Argument) -> bool:
    """Whether two constants are equal and of one type, and so their items."""
    if type(sought) is not type(found):
        return False
    if isinstance(sought, torch.Tensor) and isinstance(found, torch.Tensor):
        return _same_tensor(sought, found)
    if type(sought) in LEAVES:
        return bool(sought == found)
    if isinstance(sought, dict) and isinstance(found, dict):
        return sought.keys() == found.keys() and all(
            equal_constants(value, found[key]) for key, value in sought.items()
        )
    ours, theirs = [*parts(sought)], [*parts(found)]
    if ours and len(ours) == len(theirs):
        return all(map(equal_constants, ours, theirs))
    same: Value = sought == found
    try:
        return bool(same)
    except (RuntimeError, ValueError):  # elementwise, as arrays compare
        return bool(same.all())


def _same_tensor(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors are equal in all but how they lie in memory."""
    return (one.dtype, one.device) == (other.dtype, other.device) and (
        torch.equal(one, other)
    )
