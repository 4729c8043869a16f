"""Extra: a canonical form for calls, to compare them by meaning.

`x + 1`, `torch.add(x, 1)`, `torch.add(input=x, other=1)` and `x.add(1)` are
four ways to write one operation.  `form` gives all of them the same `Form`:
the operator's name, and the arguments by the names of its schema, defaults
left out.  `Normalized` compares calls by that form.  torch.fx compares calls as
they are written, so there a pattern has to be written once for each way.

Two calls with equal forms compute the same for tensors.  The other direction
need not hold: a call whose form is not known is compared as `Exact` does.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import operator
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from inspect import isfunction
from types import BuiltinFunctionType
from typing import Final, NamedTuple, TypeAlias

import torch
from torch import nn

from ...graph import Graph
from ...node import Node
from ...operator_schemas import (
    alike,
    may_convert,
    python_signature,
    signature_of_operator,
    type_matches,
)
from ...rewriting.patterns import (
    BY_OPCODE,
    Exact,
    MatchOptions,
    Pair,
    equal_constants,
    fetched,
    same_tensor,
    side_by_side,
)
from ...schemas.facts import OperatorInfo, facts_of, facts_of_overloads
from ...torch_private.operators import find_builtin, has_kernel
from ...torch_private.overloads import OpOverload, OpOverloadPacket
from ...use_def.text import resolves_to
from ...use_def.values import AnyValue, Argument
from ..effects.effects import by_itself, first_of, overloads_of, owned
from .matched_modules import matched_path

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
"""Operators whose two operands may be exchanged.

If an `add` is given an `alpha` that is not 1, which multiplies the second
operand, there are three values, and `commutes` says no.
"""

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


_NO_TENSORS: Final = (int, float, complex, str, tuple, list, dict)

_GIVE_TUPLES: Final = (nn.RNNBase, nn.MultiheadAttention)

_CASTS: Final = frozenset(
    "bfloat16 bool byte cdouble cfloat char double float half int long "
    "short".split()
)
"""Methods of tensors that have no operator of their own."""

_OF_PYTHON: Final = ("inplace", "training", "_stacklevel")
"""Keywords of torch.nn.functional that schemas lack, and that do not change
what is returned."""

_VIEWS: Final = [(name,) for name in "T mT H mH real imag data grad".split()]
"""Attributes of tensors that are tensors."""

_Bound: TypeAlias = tuple[inspect.Signature, dict[str, Argument]]
"""A signature, and what a call gives for its parameters."""

_MOST_STEPS: Final = 32
"""How far back it is asked where an operand comes from.

Without a limit, each node of a chain would be asked as often as the chain is
long.
"""


class Form(NamedTuple):
    """The canonical form of a call, which equivalent calls share.

    Which parameters are given belongs to it: `clamp(x, min=0)` is not
    `clamp(x, max=0)`.  Names and values are apart, because the names have to
    be equal, while the matcher pairs the nodes among the values.

    Attributes:
        name: the operator's name: "add".
        names: the parameters that are given something but their default.
        values: what they are given.
        take_tensors: for each, whether it may be a tensor.
        declared: the signature of the overload; None for a Python function.
    """

    name: str
    names: tuple[str, ...]
    values: tuple[Argument, ...]
    take_tensors: tuple[bool, ...]
    declared: inspect.Signature | None

    def takes(self, other: Form) -> bool:
        """Whether it is equivalent to another call, with the values of that.

        Parameters that neither call gives have the same defaults. A number may
        be given for a tensor, but no tensor for a number: `x + 1` is a use of
        `aten.add.Tensor(x, y)`, and `x + y` is not one of `aten.add.Scalar`.
        """
        ours, theirs = self.declared, other.declared
        if self[:2] != other[:2] or not (
            ours is theirs or not ours or not theirs or _fit(ours, theirs)
        ):
            return False
        return all(
            takes or not may_be or isinstance(value, (int, float, complex))
            for takes, may_be, value in zip(
                self.take_tensors,
                other.take_tensors,
                other.values,
                strict=True,
            )
        )


def _of_number(pattern: Node, theirs: Form, ours: Form) -> bool:
    """Whether the pattern calls a method of what is a number in the graph.

    `torch.mul(0.5, 0.5)` can be called, and `(0.5).mul(0.5)` cannot.
    """
    pairs = zip(theirs.values, ours.values, strict=True)
    return pattern.op == "call_method" and any(
        given is pattern.args[0] and isinstance(value, (int, float, complex))
        for given, value in pairs
    )


def _fit(ours: inspect.Signature, theirs: inspect.Signature) -> bool:
    """Whether two signatures differ in nothing but numbers for tensors.

    An int is not a list either: `aten.split.sizes(x, y)` must not take the 2
    of `aten.split.Tensor(x, 2)`.
    """
    in_list, other = (
        ["List" in str(p.annotation) for p in signature.parameters.values()]
        for signature in (ours, theirs)
    )
    return alike(ours, theirs) and in_list == other


class Normalized(Exact):
    """Compares calls by meaning, modules by class, or tensors by value.

    Each of the three is asked for by itself (see `MatchOptions`), since one who
    matches modules by class need not want `x + y` to be `torch.add`.  What is
    not asked for is compared as `Exact` does.
    """

    def __init__(self, options: MatchOptions) -> None:
        """Choose what to compare in which way."""
        self.normalize: bool = options.get("normalize", False)
        self.compare_constants: bool = options.get("compare_constants", False)
        self.modules_by_class: bool = options.get("modules_by_class", False)
        self._forms: dict[Node, list[Form]] = {}

    def partners(
        self, graph: Graph, sought: Iterable[Node]
    ) -> dict[Node, list[Node]]:
        """The nodes of a graph that have the key of one of the pattern."""
        found: dict[Hashable, list[Node]] = {}
        for node in graph.nodes:
            try:
                found.setdefault(self.key(node), []).append(node)
            except TypeError:  # a target that cannot be hashed
                continue
        return {node: found.get(self.key(node), []) for node in sought}

    def key(self, node: Node) -> Hashable:
        """The operator's name, the module's class, the target or the opcode.

        The matcher finds candidates by it, so equivalent calls must have equal
        keys.  The word in front keeps the operator `"add"` apart from a method
        of that name.
        """
        if self.normalize:
            # Also on numbers: what is written alike matches as it is.
            alike = _is_operator(node)
            name = (
                PYTHON_OPERATORS[node.target] if alike else operator_name(node)
            )
            if name:
                return ("operator", name)
        if self.modules_by_class and node.op == "call_module":
            return ("module", type(owned(node)))
        return node.op if node.op in BY_OPCODE else node.target

    def pair(self, pattern: Node, node: Node) -> Pair | None:
        """The arguments of both calls, or None if they are not equivalent.

        Modules are compared by class whatever their paths are, so that one
        pattern finds `conv1 → bn1` and `conv2 → bn2`.
        """
        if pattern.op == node.op == "call_module" and self.modules_by_class:
            if self.key(pattern) != self.key(node):
                return None
            return side_by_side(pattern, node)
        ours = forms(node) if self.normalize else []
        theirs = self._forms_of(pattern) if ours else []
        for our, their in itertools.product(ours, theirs):
            if their.takes(our) and not _of_number(pattern, their, our):
                return their.values, our.values
        # One may pass a default explicitly where the other passes a node.
        return super().pair(pattern, node)

    def commutes(self, pattern: Node) -> bool:
        """Whether it is a commutative operator with its two operands."""
        theirs = self._forms_of(pattern) if self.normalize else []
        return any(len(f.values) == 2 and f.name in COMMUTATIVE for f in theirs)

    def _forms_of(self, pattern: Node) -> list[Form]:
        """The forms of a node of the pattern, which does not change."""
        if pattern not in self._forms:
            self._forms[pattern] = forms(pattern, is_pattern=True)
        return self._forms[pattern]

    def conflict(self, paired: Mapping[Node, AnyValue]) -> str:
        """Say if one module of the pattern stands for two of the graph."""
        partners: dict[int, AnyValue] = {}
        calls = [n for n in paired if n.op == "call_module"]
        for node in calls if self.modules_by_class else ():
            module = owned(paired[node])
            other = partners.setdefault(id(owned(node)), module)
            # One ReLU is as good as another.
            if other is not module and (
                repr(other) != repr(module)
                or [*module.parameters(), *module.buffers()]
            ):
                return f"{node.target} stands for another module already"
        return ""

    def matched_path(
        self, path: str, root: object, paired: Mapping[Node, AnyValue]
    ) -> str | None:
        """The path in the searched module for a path in the replacement.

        Raises:
            RuntimeError: the match pairs the path with several modules, or
                with one that the searched module has under no path.
        """
        if not self.modules_by_class:
            return None
        return matched_path(path, root, paired)

    def same_value(self, pattern: Node, node: Node) -> bool:
        """Whether two get_attr nodes fetch tensors of one class, or equal."""
        if not super().same_value(pattern, node):
            return False
        return not self.compare_constants or same_tensor(
            fetched(pattern), fetched(node)
        )


def is_torchs(operands: Collection[Argument]) -> bool:
    """Whether Python's operator, given these, is that of torch.

    It is if there is a tensor among them, and no tuple or list: `x.shape +
    y.shape` joins two tuples, and `x.size(0) % 3` is a number. Inputs count as
    tensors, and so does what a module returns, if nothing is known of them.
    What a function that is marked with `wrap` returns does not count, unless
    `ShapeProp` has noted what it is.

    Cost: O(operands).
    """
    return any(map(_is_tensor, operands)) and not any(map(_is_tuple, operands))


def _is_tensor(value: Argument) -> bool:
    """Whether a value is a tensor, as far as can be seen in some steps."""
    ahead = [value]
    for _ in range(_MOST_STEPS):
        if not ahead:
            return False
        item = ahead.pop()
        known = _seen_alone(item)
        if known:
            return True
        if known is None and isinstance(item, Node):
            ahead += item.args if _is_operator(item) else [first_of(item)]
    return True


def _seen_alone(value: Argument) -> bool | None:
    """Whether a value is a tensor; None if that depends on its inputs."""
    if not isinstance(value, Node):
        return isinstance(value, torch.Tensor)
    noted = value.meta.get("type", value.type)
    if isinstance(noted, type) and issubclass(noted, torch.Tensor):
        return True
    if isinstance(noted, type) and issubclass(noted, _NO_TENSORS):
        return False
    if value.op in ("placeholder", "get_attr", "call_module"):
        return not isinstance(owned(value), _GIVE_TUPLES)
    if _is_like_first(value):
        return None
    if value.target is operator.getitem and _gives_tensors(value.args[0]):
        return isinstance(value.args[1], int)
    fitting = _fitting(value)
    is_one = all(facts.returns_one_tensor for facts in fitting)
    return True if fitting and is_one else by_itself(value)


def _is_operator(node: Node) -> bool:
    """Whether a node calls one of Python's operators that torch has, too."""
    is_builtin = isinstance(node.target, BuiltinFunctionType)
    return is_builtin and node.target in PYTHON_OPERATORS


def _is_like_first(node: Node) -> bool:
    """Whether a call that no schema speaks for gives a tensor for a tensor."""
    if node.target is getattr:
        return node.args[1:] in _VIEWS
    return node.op == "call_method" and node.target in _CASTS


def _is_tuple(value: Argument) -> bool:
    """Whether a value is known to be a tuple or list."""
    if not isinstance(value, Node):
        return isinstance(value, tuple | list)
    return (
        value.meta.get("type", value.type) in (tuple, list, torch.Size)
        or (value.target is getattr and value.args[1:] == ("shape",))
        or (value.target == "size" and len(value.args) == 1)
        or _gives_tensors(value)
    )


def _gives_tensors(value: Argument) -> bool:
    """Whether a value is a tuple or list of tensors, as `split` gives."""
    several = [
        facts.returns_tensors and not facts.returns_one_tensor
        for facts in (_fitting(value) if isinstance(value, Node) else ())
    ]
    return bool(several) and all(several)


def _fitting(node: Node) -> list[OperatorInfo]:
    """The overloads of an operator of torch that take a call's arguments."""
    is_method = node.op == "call_method"
    kwargs = {k: v for k, v in node.kwargs.items() if k not in _OF_PYTHON}
    return [
        facts
        for facts in overloads_of(node)
        if _given(
            signature_of_operator(facts), node.args, kwargs, is_method=is_method
        )
    ]


def operator_name(node: Node) -> str:
    """The name of the operator of torch that a node calls, or "".

    Python's operators on numbers and tuples are not those of torch, and a
    user's function `add` is not `torch.add`.
    """
    if node.op == "call_function":
        if _is_operator(node) and not is_torchs(node.args):
            return ""
        return _name_of_function(node.target)
    if node.op == "call_method":
        return _name_of_method(str(node.target))
    return ""


@functools.lru_cache(maxsize=4096)
def _name_of_function(target: AnyValue) -> str:
    """The name of the operator that a function calls, or ""."""
    if isinstance(target, OpOverload):
        name = target._schema.name.removeprefix("aten::")
        if not _is_of_function(facts_of(target)):
            return ""
    else:
        name = PYTHON_OPERATORS.get(target) or _name_in_torch(target)
    name = SAME_AS.get(name, name)
    overloads = _overloads(name)
    if not overloads or isinstance(target, OpOverload):
        return name if overloads else ""
    if isfunction(target) and target.__module__ == "torch.functional":
        return f"torch.{name}"  # as stft, which is not aten.stft
    if isfunction(target):
        more = _means_more(target, overloads)
        return f"torch.nn.functional.{name}" if more else name
    # Its default for `reduction` is another one than its schema says.
    reduces = any("reduction" in facts.parameters for facts in overloads)
    return "" if reduces else name


def _means_more(
    function: Callable[..., AnyValue], overloads: list[OperatorInfo]
) -> bool:
    """Whether a function of Python is another one than its operator.

    `F.kl_div` takes the mean, which `torch.kl_div` does not. And
    `F.adaptive_max_pool1d` leaves out the indices.
    """
    own = python_signature(function)
    names = own.parameters if own is not None else ()
    is_one = all(facts.returns_one_tensor for facts in overloads)
    return "reduction" in names or ("return_indices" in names and not is_one)


def _name_in_torch(target: AnyValue) -> str:
    """The name of a function of torch that has an operator's name."""
    name = str(getattr(target, "__name__", ""))
    for path in (f"torch.{name}", f"torch.nn.functional.{name}"):
        if name and resolves_to(path, target):
            return (find_builtin(target) or name).removeprefix("aten::")
    return ""


@functools.lru_cache(maxsize=1024)
def _name_of_method(name: str) -> str:
    """The name of the operator that a method of tensors calls, or ""."""
    if not hasattr(torch.Tensor, name):
        return ""
    name = SAME_AS.get(name, name)
    if isfunction(getattr(torch.functional, name, None)):
        return f"torch.{name}"
    return name if _overloads(name) else ""


@functools.lru_cache(maxsize=1024)
def _overloads(name: str) -> list[OperatorInfo]:
    """The facts of all overloads of an operator; none if unknown.

    None for a name that ends with `_`: such a call writes into its argument,
    and is equivalent to no other one.
    """
    if not name.isidentifier() or name.endswith("_"):
        return []
    overloads = facts_of_overloads(getattr(torch.ops.aten, name, None)) or []
    return [facts for facts in overloads if _is_of_function(facts)]


def _is_of_function(facts: OperatorInfo | None) -> bool:
    """Whether a function of torch may call an overload, and give what it gives.

    TorchScript has others, such as aten::add.int, which gives a number where
    `torch.add` gives a tensor; and a dtype is a number to operators.
    """
    return (
        facts is not None
        and has_kernel(facts.full_name)
        and not str(facts.schema).endswith("ScalarType")
    )


def form(node: Node) -> Form | None:
    """The canonical form of a call; None if its operator is not known."""
    return next(iter(forms(node)), None)


def forms(node: Node, *, is_pattern: bool = False) -> list[Form]:
    """The canonical forms of a call: one for each overload it may mean.

    Most nodes do not say which overload they call, so two calls are equivalent
    if they have a form in common. Constants choose: in `x.var(0)` the 0 is a
    dimension, while `x.var(d)` of a pattern may become either. An int stands
    for a list of ints only if no overload takes the int itself.

    Args:
        node: the call.
        is_pattern: its inputs stand for anything, and not for tensors alone.
    """
    name = operator_name(node)
    if not name:
        return []
    args, kwargs = node.args, node.kwargs
    is_method = node.op == "call_method"
    if is_method and name in SIZES and len(args) > 2:
        args = (args[0], args[1:])
    own = _own_signature(node, name)
    if own is not None:
        given = _given(own, args, kwargs, is_method=is_method)
        return [] if given is None else [_form(name, own, given, None)]
    values = (*args, *kwargs.values())
    layouts = _layouts(name, is_method, len(args), tuple(kwargs))
    bound = [
        (signature, {key: values[at] for key, at in places.items()})
        for signature, places in layouts
    ]
    if len(bound) > 1 or isinstance(node.target, OpOverload):
        bound = _meant(node, bound, is_pattern=is_pattern)
    return [_form(name, *pair, pair[0]) for pair in bound]


def _meant(
    node: Node, bound: list[_Bound], *, is_pattern: bool
) -> list[_Bound]:
    """The overloads that take what a call gives, by its type.

    `torch.var(x, 1)` is not the overload in which 1 would be a truth value. A
    node may call that all the same, as `aten.var.default(x, 1)` does, or
    because `torch.ops` converts the 1. Then there is none, since no function
    calls it with the same arguments, and it matches what is written like it.
    """
    takes = functools.partial(_take, type_matches, is_pattern=is_pattern)
    exact = functools.partial(_take, _is_exact, is_pattern=is_pattern)
    meant = list(filter(exact, bound)) or list(filter(takes, bound))
    facts = facts_of(node.target)
    called = facts and signature_of_operator(facts)
    if isinstance(node.target, OpOverloadPacket):
        converts = functools.partial(_take, may_convert, is_pattern=is_pattern)
        called, _ = next(filter(converts, bound), (None, None))
    elif facts is None:
        return meant or bound
    return [
        pair
        for pair in bound
        if called
        and pair[0] is called
        and any(alike(called, other) for other, _ in meant)
    ]


def _is_exact(annotation: AnyValue, given: AnyValue) -> bool:
    """Whether a parameter takes a type, but no int for a list of ints."""
    in_list = given is int and "List" in str(annotation)
    return type_matches(annotation, given) and not in_list


def _take(
    matches: Callable[[AnyValue, AnyValue], bool],
    bound: _Bound,
    *,
    is_pattern: bool,
) -> bool:
    """Whether parameters take what they are given, as far as that is known."""

    def take(annotation: AnyValue, value: Argument) -> bool:
        if value is None or isinstance(value, (int, float, complex)):
            return matches(annotation, type(value))
        if isinstance(value, (list, tuple)):
            return "List" in str(annotation)
        unknown = is_pattern or not isinstance(value, Node)
        return unknown or _takes_tensors(annotation) or not _is_tensor(value)

    signature, given = bound
    return all(
        take(signature.parameters[name].annotation, value)
        for name, value in given.items()
    )


def _own_signature(node: Node, name: str) -> inspect.Signature | None:
    """The signature of a function of torch that is written in Python.

    It has defaults that ATen's schema lacks: no overload of `aten.dropout`
    takes what `F.dropout(x)` gives.
    """
    python: AnyValue = node.target
    if node.op == "call_method" and name.startswith("torch."):
        python = getattr(torch.Tensor, str(node.target))
    return python_signature(python) if isfunction(python) else None


@functools.lru_cache(maxsize=4096)
def _layouts(
    name: str, is_method: bool, count: int, keywords: tuple[str, ...]
) -> list[tuple[inspect.Signature, dict[str, int]]]:
    """The overloads that fit a call: parameter -> which argument it gets.

    That depends on how many arguments there are, and on their keywords alone,
    so the answer is remembered for all calls that look alike.

    Args:
        name: the operator's.
        is_method: as for `_given`.
        count: how many positional arguments there are.
        keywords: of the others, which follow these.
    """
    args = range(count)
    kwargs: AnyValue = dict(zip(keywords, itertools.count(count), strict=False))
    layouts = []
    for facts in _overloads(name.removeprefix("torch.")):
        places: AnyValue = _given(
            signature_of_operator(facts),
            tuple(args),
            kwargs,
            is_method=is_method,
        )
        if places is not None:
            layouts.append((signature_of_operator(facts), places))
    return layouts


def _given(
    signature: inspect.Signature,
    args: tuple[Argument, ...],
    kwargs: dict[str, Argument],
    *,
    is_method: bool,
) -> dict[str, Argument] | None:
    """The arguments by the names of the parameters; None if they do not fit.

    Args:
        signature: what they are to fit.
        args: positional arguments.
        kwargs: keyword arguments.
        is_method: the first argument is `self`, wherever the schema has that:
            `x.where(c, y)` is `where(c, x, y)`.
    """
    parameters = signature.parameters
    named = dict(kwargs)
    names = enumerate(parameters)
    place = next((n for n, name in names if name in ("self", "input")), 0)
    if is_method and place:
        first, *rest = args
        args = (*rest[:place], first, *rest[place:])
        if len(rest) < place:
            args, named["self"] = (*rest,), first
    for old, new in (("input", "self"), ("self", "input")):
        if old in named and old not in parameters and new in parameters:
            named[new] = named.pop(old)
    try:
        return signature.bind(*args, **named).arguments
    except TypeError:
        return None


def _form(
    name: str,
    signature: inspect.Signature,
    given: dict[str, Argument],
    declared: inspect.Signature | None,
) -> Form:
    """The form of a call, without the arguments that are the default anyway.

    The tensor is called `input` in some places and `self` in others: here
    `self`.
    """
    parameters = signature.parameters
    left = {
        key: value
        for key, value in given.items()
        if not equal_constants(value, parameters[key].default)
    }
    names = ["self" if key == "input" else key for key in left]
    take = [_takes_tensors(parameters[key].annotation) for key in left]
    return Form(
        name,
        tuple(names),
        tuple(left.values()),
        tuple(take),
        declared,
    )


def _takes_tensors(annotation: AnyValue) -> bool:
    """Whether a parameter may be given a tensor."""
    return annotation is inspect.Parameter.empty or "Tensor" in str(annotation)
