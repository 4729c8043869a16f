"""Passes: one way to write a call for the many that Python allows.

`F.relu(x)`, `F.relu(input=x)` and `F.relu(x, False)` are the same call.  A pass
that looks for it should not have to know all three, so there are two passes
that run before it:

    NormalizeArgs         F.relu(x)        →  F.relu(input=x, inplace=False)
    NormalizeOperators    torch.add(x, y)  →  x + y

A call stays as it is where one could tell the difference, or where it is not
known which overload of an operator it means.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable
from types import BuiltinFunctionType
from typing import ClassVar

import torch

from ..extra.effects.effects import is_tensor
from ..extra.effects.modules import hooks_of
from ..extra.matching.call_forms import PYTHON_OPERATORS, is_torchs
from ..graph_module import GraphModule
from ..interpreter import Transformer
from ..linked_list.opcodes import Target
from ..node import Node
from ..operator_schemas import (
    ArgsKwargsPair,
    create_type_hint,
    normalize_module,
    normalize_overload,
    overload_of,
)
from ..proxy import Proxy
from ..schemas.facts import OperatorInfo, facts_of_overloads
from ..torch_private.overloads import OpOverload, OpOverloadPacket
from ..use_def.annotations import signature_of
from ..use_def.values import LEAVES, AnyValue, Args, Argument, Kwargs
from .schema_type_annotation import AnnotateTypesWithSchema

__all__ = ["NormalizeArgs", "NormalizeOperators"]


class NormalizeArgs(Transformer):
    """Writes arguments as the signature of what is called has them.

        gm = NormalizeArgs(gm).transform()

    Defaults are filled in.  Which overload of an operator is meant is told by
    the types of the arguments: what `ShapeProp` has noted, and what is known
    to be a tensor.  (`torch.max(x, n)` means one thing if `n` is a number, and
    another if it is a tensor.)  Methods stay as they are.

    Left alone is a module with hooks, as these see how it is called, and a
    user's function whose defaults are not constants, because a list that is
    made for each call is not the one that all calls share.

    torch.fx: experimental/normalize.py, NormalizeArgs; it takes the type of
    the node itself for that of each of its arguments.
    """

    _keeps_values = True

    def __init__(
        self, module: GraphModule, normalize_to_only_use_kwargs: bool = True
    ) -> None:
        """Prepare to normalize a copy of a module.

        Args:
            module: stays as it is.
            normalize_to_only_use_kwargs: give all arguments by keyword; if
                False, what was given by position stays so.
        """
        super().__init__(module)
        self.normalize_to_only_use_kwargs = normalize_to_only_use_kwargs
        self._tensors: dict[Node, bool] = {}
        self._types: tuple[Args, Kwargs] = ((), {})

    def run_node(self, n: Node) -> AnyValue:
        """Run one node, with the types of its arguments at hand."""
        if n.op == "call_function":
            types = tuple([self._type(arg) for arg in n.args])
            named = {name: self._type(arg) for name, arg in n.kwargs.items()}
            self._types = (types, named)
        return super().run_node(n)

    def call_function(
        self,
        target: Target,
        args: Args,
        kwargs: AnyValue,
        arg_types: tuple[AnyValue, ...] | None = None,
        kwarg_types: dict[str, AnyValue] | None = None,
    ) -> AnyValue:
        """A call of the function, its arguments as the signature has them.

        Args:
            target: the function.
            args: what it gets by position.
            kwargs: what it gets by keyword.
            arg_types: the types of `args`; those of the node by default.
            kwarg_types: the types of `kwargs`, likewise.

        torch.fx: experimental/normalize.py, NormalizeArgs.call_function
        """
        types = self._types[0] if arg_types is None else arg_types
        named = self._types[1] if kwarg_types is None else kwarg_types
        if callable(target):
            facts = overload_of(target, args, kwargs, types, named)
            normalized = normalize_overload(
                target, facts, args, kwargs, self.normalize_to_only_use_kwargs
            )
            if normalized and _is_the_same(target, args, kwargs, normalized):
                given = (*args, *kwargs.values())
                known = (*types, *named.values())
                kinds = dict(zip(map(id, given), known, strict=False))
                args = normalized.args
                kwargs = _renamed(target, facts, normalized.kwargs, kinds)
        return super().call_function(target, args, kwargs)

    def call_module(
        self, target: Target, args: Args, kwargs: AnyValue
    ) -> AnyValue:
        """A call of the module, its arguments as its forward has them."""
        path = str(target)
        normalized = normalize_module(
            self.module, path, args, kwargs, self.normalize_to_only_use_kwargs
        )
        if normalized and next(hooks_of(self.fetch_attr(path)), None) is None:
            args, kwargs = normalized
        return super().call_module(target, args, kwargs)

    def _type(self, arg: Argument) -> AnyValue:
        """The type of an argument; `object` for a node of unknown type.

        That fits no parameter, so that an ambiguous call stays as it is.
        """
        if isinstance(arg, list | tuple):
            kind = list if isinstance(arg, list) else tuple
            return create_type_hint(kind([self._item(item) for item in arg]))
        return self._item(arg)

    def _item(self, arg: Argument) -> AnyValue:
        """What `_type` gives for what is not looked into."""
        if not isinstance(arg, Node):
            return type(arg)
        if is_tensor(arg, self._tensors):
            return torch.Tensor
        return arg.meta.get("type", object)


def _is_the_same(
    target: Callable[..., AnyValue],
    args: Args,
    kwargs: AnyValue,
    changed: ArgsKwargsPair,
) -> bool:
    """Whether a function does the same with other arguments.

    Operators do, if code can name the arguments: no call can give one that is
    named `from`.  Other functions may tell a default from an equal value, as
    one that collects into a list which all calls share, or be decorated with a
    function that takes arguments in one way only.
    """
    if facts_of_overloads(target) is not None:
        return not any(map(keyword.iskeyword, changed.kwargs))  # as uniform's
    given = {id(value) for value in (*args, *kwargs.values())}
    filled = [
        value
        for value in (*changed.args, *changed.kwargs.values())
        if id(value) not in given
    ]
    try:
        if hasattr(target, "__wrapped__"):
            outer = signature_of(target, follow_wrapped=False)
            outer.bind(*changed.args, **changed.kwargs)
    except TypeError:
        return False
    return all(map(_is_constant, filled))


def _renamed(
    target: Callable[..., AnyValue],
    facts: OperatorInfo | None,
    kwargs: AnyValue,
    kinds: dict[int, AnyValue],
) -> AnyValue:
    """Keyword arguments by the names that a call must give them.

    Most schemas name the first argument `self`.  Functions of torch name that
    `input` if it is a tensor, and operators never do.

    Args:
        target: the function or operator.
        facts: the overload that is meant.
        kwargs: with `input` for `self`.
        kinds: the types of the arguments, by their ids.
    """
    if facts is None or "input" in facts.parameters:
        return kwargs
    is_operator = isinstance(target, OpOverload | OpOverloadPacket)
    kind = kinds.get(id(kwargs.get("input")))
    if not (is_operator or _is_number_type(kind)):
        return kwargs
    return {
        "self" if name == "input" else name: value
        for name, value in kwargs.items()
    }


def _is_number_type(kind: AnyValue) -> bool:
    """Whether a type is a number type."""
    return isinstance(kind, type) and issubclass(kind, (int, float, complex))


def _is_constant(value: AnyValue) -> bool:
    """Whether a value is as good as another one that is equal."""
    if isinstance(value, tuple):
        return all(map(_is_constant, value))
    return type(value) in LEAVES


class NormalizeOperators(AnnotateTypesWithSchema):
    """Writes functions of torch as the operators of Python that call them.

    A function with a keyword, such as `torch.add(x, y, alpha=2)`, is left
    alone, because an operator has no room for it, and so is one without a
    tensor in sight (`is_torchs`): `torch.div(n, 3)` of two numbers is a tensor,
    and `n / 3` is a number.  Types are noted as the base class does.

    Attributes:
        binary_magic_method_remap: function -> operator.

    torch.fx: experimental/normalize.py, NormalizeOperators; it rewrites calls
    of two numbers, too.
    """

    _keeps_values = True

    binary_magic_method_remap: ClassVar[
        dict[Callable[..., AnyValue], Callable[..., AnyValue]]
    ] = {
        getattr(torch, name): written
        for written, name in PYTHON_OPERATORS.items()
        if callable(written) and name not in ("pow", "matmul", "neg", "abs")
    }

    def call_function(
        self, target: Target, args: Args, kwargs: AnyValue
    ) -> AnyValue:
        """A call of the function, or of the operator that calls it."""
        if isinstance(target, BuiltinFunctionType) and len(args) == 2:
            known = self.binary_magic_method_remap.get(target)
            operands = [a.node if isinstance(a, Proxy) else a for a in args]
            if known and not kwargs and is_torchs(operands):
                target = known
        return super().call_function(target, args, kwargs)
