"""Stage 02, use-def: one form for the arguments of a call.

`torch.add(x, y)` and `torch.add(input=x, other=y, alpha=1)` are equivalent
calls.  Every operator of torch has a signature for each of its overloads.
Here a call is matched with the overload it means, and its arguments are
written the way the signature of that overload gives them.

Normalizing must not change what a call does: where it is not clear which
overload is meant, there is an error or None, and no guess.  The first overload
that fits need not be the right one: for `torch.max(x, 1)` it is the one whose
second argument is another tensor, where 1 is a dimension.

The printed signatures are torch.fx's, so lists are `typing.List`.
"""

from __future__ import annotations

import enum
import functools
import inspect
import numbers
import typing
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter, Signature, _ParameterKind
from types import BuiltinFunctionType, GenericAlias
from typing import Final, Literal, TypeVar, overload

import torch
from torch import FunctionSchema

from .node import Node
from .schemas.facts import OperatorInfo, facts_of_overloads
from .torch_private.operators import boolean_dispatched, has_kernel
from .torch_private.overloads import OpOverload, OpOverloadPacket
from .use_def.annotations import signature_of
from .use_def.values import AnyValue, Args, ArgsKwargsPair, Function, Kwargs

__all__ = [
    "ArgsKwargsPair",
    "check_for_mutable_operation",
    "create_type_hint",
    "get_signature_for_torch_op",
    "normalize_function",
    "normalize_module",
    "type_matches",
]


# -- signatures --------------------------------------------------------------

t = TypeVar("t")

_PLAIN: Final[dict[str, object]] = {
    "AnyEnumType": enum.Enum,
    "BoolType": bool,
    "ComplexType": complex,
    "DeviceObjType": torch.device,
    "FloatType": float,
    "GeneratorType": torch.Generator,
    "IntType": int,
    "LayoutType": torch.layout,
    "NoneType": type(None),
    "NumberType": numbers.Number,
    "QSchemeType": torch.qscheme,
    "StorageType": torch.UntypedStorage,
    "StreamObjType": torch.Stream,
    "StringType": str,
    "SymBoolType": bool,
    "SymFloatType": float,
    "SymIntType": int,
    "TensorType": torch.Tensor,
    "VarType": t,
}
"""Kind of a schema's type → the Python type; Any for all others."""

_GENERIC: Final[dict[str, AnyValue]] = {
    "DictType": typing.Dict,  # noqa: UP006  (printed as torch.fx prints it)
    "FutureType": torch.jit.Future,
    "ListType": typing.List,  # noqa: UP006
    "OptionalType": typing.Optional,
    "TupleType": typing.Tuple,  # noqa: UP006
    "UnionType": typing.Union,
}
"""Kind of a schema's type that contains types → the Python generic."""


def _python_type(jit_type: AnyValue) -> object:
    """The annotation for a type in a schema; Any for the few without one.

    Args:
        jit_type: a torch._C.JitType, of which torch's stubs know too little.
    """
    kind: str = jit_type.kind()
    if kind not in _GENERIC:
        return _PLAIN.get(kind, AnyValue)
    inner = tuple(map(_python_type, jit_type.containedTypes()))
    return _GENERIC[kind][inner[0] if len(inner) == 1 else inner]


@functools.lru_cache(maxsize=8192)
def signature_of_operator(facts: OperatorInfo) -> Signature:
    """The signature that says what the schema of an operator says.

    `self` is named `input`, as in torch's own functions, unless there is an
    `input` already.  `from` is a keyword in Python, so that parameter and
    those before it can be given by position only.

    Cost: some 20 µs; it is kept.
    """
    schema = facts.schema
    names = [argument.name for argument in schema.arguments]
    if "self" in names and "input" not in names:
        names[names.index("self")] = "input"
    positional_only = names.index("from") + 1 if "from" in names else 0
    parameters = []
    for i, argument in enumerate(schema.arguments):
        kind: _ParameterKind = Parameter.POSITIONAL_OR_KEYWORD
        if i < positional_only:
            kind = Parameter.POSITIONAL_ONLY
        elif argument.kwarg_only:
            kind = Parameter.KEYWORD_ONLY
        has_default = argument.has_default_value()
        default = argument.default_value if has_default else Parameter.empty
        annotation = _python_type(argument.type)
        parameters.append(
            Parameter(names[i], kind, default=default, annotation=annotation)
        )
    returns = tuple([_python_type(value.type) for value in schema.returns])
    several = GenericAlias(tuple, returns) if returns else None
    result = returns[0] if len(returns) == 1 else several
    return Signature(parameters, return_annotation=result)


def python_signature(function: Callable[..., AnyValue]) -> Signature | None:
    """The signature of a function written in Python; None if there is none.

    Some functions of torch.nn.functional choose between two functions by a
    flag. They have a signature if both functions have the same parameters.
    """
    if function in boolean_dispatched:
        branches = boolean_dispatched[function]
        yes = signature_of(inspect.unwrap(branches["if_true"]))
        no = signature_of(inspect.unwrap(branches["if_false"]))
        return yes if yes.parameters == no.parameters else None
    try:
        return signature_of(inspect.unwrap(function))
    except ValueError:  # written in C
        return None


@overload
def get_signature_for_torch_op(
    op: Function, return_schemas: Literal[False] = False
) -> list[Signature] | None: ...
@overload
def get_signature_for_torch_op(
    op: Function, return_schemas: Literal[True]
) -> tuple[list[Signature] | None, list[FunctionSchema] | None]: ...
def get_signature_for_torch_op(
    op: Function, return_schemas: bool = False
) -> (
    list[Signature]
    | tuple[list[Signature] | None, list[FunctionSchema] | None]
    | None
):
    """The signatures of an operator's overloads.

    Args:
        op: a function of torch, an OpOverload or an OpOverloadPacket.
        return_schemas: also give the schemas that they were made from.

    Returns:
        The signatures, or None if `op` has no schema; with `return_schemas`
        the pair of both, or of two Nones.

    Cost: O(overloads).  The first question for an operator builds its
    signatures, some 20 µs for each overload.

    torch.fx: operator_schemas.py, get_signature_for_torch_op
    """
    found = facts_of_overloads(op)
    if found is None:
        return (None, None) if return_schemas else None
    signatures = [signature_of_operator(facts) for facts in found]
    if return_schemas:
        return signatures, [facts.schema for facts in found]
    return signatures


def _bound(
    signature: Signature,
    args: Sequence[AnyValue],
    kwargs: Mapping[str, AnyValue],
) -> Mapping[str, AnyValue] | None:
    """What each parameter is given; None if the arguments do not fit."""
    try:
        return signature.bind(*args, **kwargs).arguments
    except TypeError:
        return None


def _fitting(
    target: Function, args: Args, kwargs: Kwargs
) -> list[OperatorInfo]:
    """The overloads of an operator that take the arguments, types aside."""
    return [
        facts
        for facts in facts_of_overloads(target) or ()
        if _bound(signature_of_operator(facts), args, kwargs) is not None
    ]


def check_for_mutable_operation(
    target: Function, args: Args, kwargs: Kwargs
) -> None:
    """Raise if the call is sure to write into one of its arguments.

    If more than one overload fits the arguments, nothing is sure.

    Raises:
        RuntimeError: the one overload that fits has a mutable schema.

    torch.fx: operator_schemas.py, check_for_mutable_operation
    """
    fitting = _fitting(target, args, kwargs)
    if len(fitting) == 1 and fitting[0].writes:
        raise RuntimeError(
            f"Tried to trace mutable operation {fitting[0].schema}. FX only "
            "supports functional code, so operations that mutate operands "
            "in-place (e.g. via `out` arguments) are not supported"
        )


def create_type_hint(x: object) -> object:
    """The type of a list or tuple whose items have the types in `x`.

    `[int, bool]` gives `list[int]`, `(int, str)` gives `tuple[Any, ...]`: the
    items' type is the most general one among them, or else Any.

    Args:
        x: a list or tuple of classes; anything else is returned as it is.

    torch.fx: operator_schemas.py, create_type_hint
    """
    if not isinstance(x, list | tuple):
        return x
    base: AnyValue = x[0] if x else AnyValue
    try:
        for cls in x:
            if issubclass(base, cls):
                base = cls
            elif not issubclass(cls, base):
                base = AnyValue
                break
    except TypeError:  # something in x is not a class
        warnings.warn(
            "We were not able to successfully create type hint from the type "
            f"{x}",
            stacklevel=2,
        )
        return x
    items = (base,) if isinstance(x, list) else (base, ...)
    return GenericAlias(type(x), items)


def type_matches(signature_type: AnyValue, argument_type: AnyValue) -> bool:
    """Whether an argument of a type can be given for an annotated parameter.

    As torch's own calls do, this takes an int for a list of ints, a tuple for
    a list, a dtype for an int, and ints and floats for a number.

    Args:
        signature_type: the annotation, as `get_signature_for_torch_op` has it.
        argument_type: a class, or as `create_type_hint` makes it.

    torch.fx: operator_schemas.py, type_matches
    """
    if signature_type is argument_type:
        return True
    origin: object = typing.get_origin(signature_type)
    if origin is typing.Union:
        union = typing.get_args(signature_type)
        return any(type_matches(member, argument_type) for member in union)
    if origin is list:
        (item,) = typing.get_args(signature_type)
        container: object = typing.get_origin(argument_type)
        parts = [x for x in typing.get_args(argument_type) if x is not ...]
        return (argument_type is int and item is int) or (
            container in (list, tuple)
            and all(type_matches(item, part) for part in parts)
        )
    if signature_type is int and argument_type is torch.dtype:
        return True  # schemas write dtypes as ints
    classes = isinstance(signature_type, type) and isinstance(
        argument_type, type
    )
    return classes and issubclass(argument_type, signature_type)


def normalize_function(
    target: Function,
    args: Args,
    kwargs: Kwargs | None = None,
    arg_types: Args | None = None,
    kwarg_types: Kwargs | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """A call's arguments, written in the one way that the signature gives.

    Defaults are filled in, if they are known: the schemas of functions such as
    `torch.kl_div` have another one for `reduction` than a call of them has.
    What was given by position stays so, what comes behind goes by keyword.

    Args:
        target: the function that is called.
        args: its positional arguments.
        kwargs: its keyword arguments.
        arg_types: types of the arguments, to choose among overloads.
        kwarg_types: types of the keyword arguments, likewise.
        normalize_to_only_use_kwargs: give everything by keyword.

    Returns:
        The arguments, or None if no signature is known, none fits, or the one
        that does has `*args` or parameters without a name.

    Raises:
        RuntimeError: more than one overload fits, and no types are given.
        TypeError: the arguments do not fit a Python function.

    torch.fx: operator_schemas.py, normalize_function
    """
    kwargs = kwargs or {}
    by_name = normalize_to_only_use_kwargs
    facts = overload_of(target, args, kwargs, arg_types, kwarg_types)
    return normalize_overload(target, facts, args, kwargs, by_name)


def overload_of(
    target: Function,
    args: Args,
    kwargs: Kwargs,
    arg_types: Args | None,
    kwarg_types: Kwargs | None,
) -> OperatorInfo | None:
    """The overload of an operator that a call means.

    None if none fits, the target is not an operator, or it is not certain:
    `torch.ops.aten.var(x, 1)` is the overload in which 1 is a truth value, as
    the first is called that takes what is given, converted, and what torch.ops
    converts is not documented.  Overloads that differ in the types of their
    parameters alone are no reason for None, because the arguments are written
    alike.  The arguments are those of `normalize_function`, and so is what is
    raised.
    """
    if not isinstance(target, _WITH_SCHEMA):
        return None
    fitting = _fitting(target, args, kwargs)
    if isinstance(target, BuiltinFunctionType):
        # The others are TorchScript's, such as aten::add.int(int a, int b).
        fitting = [facts for facts in fitting if has_kernel(facts.full_name)]
    if len(fitting) > 1:
        if arg_types is None and kwarg_types is None:
            schemas = "\n".join(
                [str(signature_of_operator(facts)) for facts in fitting]
            )
            raise RuntimeError(
                f"Tried to normalize arguments to {torch.typename(target)} but "
                "the schema match was ambiguous! Please provide argument types "
                "to the normalize_arguments() call. Available schemas:\n"
                f"{schemas}"
            )
        types = arg_types or (), kwarg_types or {}
        taking = [f for f in fitting if _types_fit(f, types, type_matches)]
        # A function such as torch.add looks at types; torch.ops calls the first
        # overload for which all arguments can be converted.
        if taking and isinstance(target, OpOverloadPacket):
            ours = signature_of_operator(taking[0])
            for facts in fitting[: fitting.index(taking[0])]:
                converts = _types_fit(facts, types, may_convert)
                if converts and not alike(signature_of_operator(facts), ours):
                    return None
        fitting = taking
    return fitting[0] if fitting else None


def alike(one: Signature, other: Signature) -> bool:
    """Whether two signatures differ in the types alone."""
    named, beside = (
        [(p.name, p.default) for p in signature.parameters.values()]
        for signature in (one, other)
    )
    return named == beside


_CONVERTED: Final = {bool, int, float, complex, numbers.Number, torch.Tensor}
"""Types of which torch.ops takes one for another."""


def may_convert(signature_type: AnyValue, argument_type: AnyValue) -> bool:
    """Whether torch.ops may take an argument for a parameter."""
    taken = signature_type, *typing.get_args(signature_type)
    origin: object = typing.get_origin(signature_type)
    is_plain = argument_type in (*_CONVERTED, object, type(None))
    return type_matches(signature_type, argument_type) or (
        is_plain and origin is not list and not _CONVERTED.isdisjoint(taken)
    )


def normalize_overload(
    target: Function,
    facts: OperatorInfo | None,
    args: Args,
    kwargs: Kwargs,
    only_kwargs: bool,
) -> ArgsKwargsPair | None:
    """Do what `normalize_function` does, for the overload that is meant.

    Args:
        target: the function that is called.
        facts: what `overload_of` gives.
        args: its positional arguments.
        kwargs: its keyword arguments.
        only_kwargs: give everything by keyword.
    """
    if not isinstance(target, _WITH_SCHEMA):
        signature = _signature_by_name(target)
        return _normalize(signature, args, kwargs, only_kwargs)
    if facts is None:
        return None
    of_python = isinstance(target, BuiltinFunctionType)
    signature = _as_called(facts, of_python=of_python)
    return _normalize(signature, args, kwargs, only_kwargs)


_WITH_SCHEMA: Final = (BuiltinFunctionType, OpOverload, OpOverloadPacket)
"""Types of callables whose signature is read from schemas."""


def _types_fit(
    facts: OperatorInfo,
    types: tuple[Args, Kwargs],
    takes: Callable[[AnyValue, AnyValue], bool],
) -> bool:
    """Whether arguments of these types can be given to an overload."""
    bound = _bound(signature_of_operator(facts), *types)
    parameters = signature_of_operator(facts).parameters
    return bound is not None and all(
        takes(parameters[name].annotation, given)
        for name, given in bound.items()
    )


def _signature_by_name(function: Function) -> Signature | None:
    """The signature of a Python function, if arguments can be given by name.

    None if it takes `*args`, `**kwargs` or arguments by position only.

    Operators have one parameter that cannot be given by name, `from`.  It is
    let through, because a caller that asks for keywords gets a dict, which can
    be passed with `**`.
    """
    signature = python_signature(function)
    nameable = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    if signature is not None and all(
        p.kind in nameable for p in signature.parameters.values()
    ):
        return signature
    return None


@functools.lru_cache(4096)
def _as_called(facts: OperatorInfo, *, of_python: bool) -> Signature:
    """An overload's signature, with the defaults that a call of it has.

    torch reads the text of `int reduction=Mean` as 0, so `torch.kl_div(x, y)`
    does not reduce as the schema says, and some functions written by hand lack
    parameters of the schema.  A parameter whose default nobody knows is left
    out.

    Args:
        facts: what is known of the overload.
        of_python: whether it is called by a function such as `torch.add`, and
            not through `torch.ops`.
    """
    signature, parameters = signature_of_operator(facts), []
    declared: Iterable[AnyValue] = facts.schema.arguments
    for parameter, argument in zip(
        signature.parameters.values(), declared, strict=True
    ):
        default = parameter.default
        real = str(argument.real_type).removeprefix("Optional[").rstrip("]")
        if default is not Parameter.empty:
            default = _ENUMS.get((real, str(default)), default)
            if of_python and argument.name in _UNSAID:
                default = _UNKNOWN
        parameters.append(parameter.replace(default=default))
    return signature.replace(parameters=parameters)


_UNSAID: Final = ("reduction", "layout", "pin_memory")
"""Parameters whose default no schema says for torch's functions: they read
`reduction=Mean` as 0, which is none, and some refuse the others."""

_ENUMS: Final = {
    ("ScalarType", "4"): torch.int64,
    ("MemoryFormat", "0"): torch.contiguous_format,
}
"""What schemas write as a number: its type and number -> what it stands for."""

_UNKNOWN: Final = object()
"""Stands for a default that is left out."""


def _normalize(
    signature: Signature | None, args: Args, kwargs: Kwargs, only_kwargs: bool
) -> ArgsKwargsPair | None:
    """The arguments with defaults, as many by position as were given so."""
    if signature is None:
        return None
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    items = [(k, v) for k, v in bound.arguments.items() if v is not _UNKNOWN]
    by_position = 0 if only_kwargs else len(args)
    return ArgsKwargsPair(
        tuple([value for _, value in items[:by_position]]),
        dict(items[by_position:]),
    )


def normalize_module(
    root: torch.nn.Module,
    target: str,
    args: Args,
    kwargs: Kwargs | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a call of a torch.nn module, by its `forward`.

    Args:
        root: the module in which `target` is looked up.
        target: the dotted path of the module that is called.
        args: its positional arguments, without the module.
        kwargs: its keyword arguments.
        normalize_to_only_use_kwargs: give everything by keyword.

    Returns:
        The arguments with defaults filled in, or None if the module is not
        one of torch.nn or its forward has `*args`.

    Raises:
        RuntimeError: `root` has no module at `target`.
        TypeError: the arguments do not fit.

    torch.fx: operator_schemas.py, normalize_module
    """
    try:
        module = root.get_submodule(target)
    except AttributeError as error:
        raise RuntimeError(
            f"Tried to normalize node with target {target} but root did not "
            "have that target!"
        ) from error
    cls = type(module)
    if getattr(torch.nn, cls.__name__, None) is not cls:
        return None
    own = _signature_by_name(module.forward)
    return _normalize(own, args, kwargs or {}, normalize_to_only_use_kwargs)


def normalized_arguments(
    self: Node,
    root: torch.nn.Module,
    arg_types: Args | None = None,
    kwarg_types: Kwargs | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a node, bound to the signature of what is called.

    It is a method of Node.

    Args:
        self: the node.
        root: the module in which call_module targets are looked up.
        arg_types: types of the arguments, to choose an overload.
        kwarg_types: types of the keyword arguments, likewise.
        normalize_to_only_use_kwargs: give everything by keyword.

    Returns:
        Arguments with defaults filled in, or None where the signature is
        not known.

    Raises:
        RuntimeError: more than one overload fits and no types are given.

    torch.fx: node.py, Node.normalized_arguments
    """
    given, by_name = (self.args, self.kwargs), normalize_to_only_use_kwargs
    if callable(self.target):
        return normalize_function(
            self.target, *given, arg_types, kwarg_types, by_name
        )
    if self.op == "call_module":
        return normalize_module(root, self.target, *given, by_name)
    return None
