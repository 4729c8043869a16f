"""Stage 02, use-def: what the signatures of torch's operators say.

`torch.add(x, y)` and `torch.add(input=x, other=y, alpha=1)` are one call in
two spellings.  Every operator of torch has a schema for each of its overloads,
`add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`.  Here a
schema becomes an `inspect.Signature`, a call is bound to the overload it
means, and its arguments are written in one way.
"""

from __future__ import annotations

import enum
import functools
import inspect
import numbers
import typing
import warnings
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature, _ParameterKind
from types import BuiltinFunctionType, GenericAlias
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar, overload
from weakref import WeakKeyDictionary

import torch
from torch._C import FunctionSchema, _jit_get_schemas_for_operator
from torch._jit_internal import boolean_dispatched
from torch._ops import OpOverload, OpOverloadPacket
from torch.jit._builtins import _find_builtin

from .usedef.values import Argument, Value

__all__ = [
    "ArgsKwargsPair",
    "check_for_mutable_operation",
    "create_type_hint",
    "get_signature_for_torch_op",
    "normalize_function",
    "normalize_module",
    "type_matches",
]

Operator: TypeAlias = Callable[..., Value]
"""A function of torch, an OpOverload or an OpOverloadPacket."""


class ArgsKwargsPair(NamedTuple):
    """The arguments of a call.

    torch.fx: operator_schemas.py, ArgsKwargsPair
    """

    args: tuple[Value, ...]
    kwargs: dict[str, Value]


# -- from schema to signature ----------------------------------------------

t = TypeVar("t")

_PLAIN: Final[dict[str, object]] = {
    "AnyEnumType": enum.Enum,
    "AnyType": Value,
    "BoolType": bool,
    "ComplexType": complex,
    "DeviceObjType": torch.device,
    "FloatType": float,
    "GeneratorType": torch.Generator,
    "IntType": int,
    "LayoutType": torch.layout,
    "NoneType": type(None),
    "NumberType": numbers.Number,
    "PyObjectType": Value,
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
"""Kind of a schema's type → the Python type."""

_GENERIC: Final[dict[str, Value]] = {
    "DictType": typing.Dict,  # noqa: UP006  (printed as torch.fx prints it)
    "FutureType": torch.jit.Future,
    "ListType": typing.List,  # noqa: UP006
    "OptionalType": typing.Optional,
    "TupleType": typing.Tuple,  # noqa: UP006
    "UnionType": typing.Union,
}
"""Kind of a schema's type that contains types → the Python generic."""


def _python_type(jit_type: Value) -> object:
    """The annotation for a type in a schema; Any for the few without one.

    Args:
        jit_type: a torch._C.JitType, of which torch's stubs know too little.
    """
    kind: str = jit_type.kind()
    if kind not in _GENERIC:
        return _PLAIN.get(kind, Value)
    inner = tuple(map(_python_type, jit_type.containedTypes()))
    return _GENERIC[kind][inner[0] if len(inner) == 1 else inner]


def _signature(schema: FunctionSchema) -> Signature:
    """The signature that a schema stands for.

    `from` is a keyword in Python, so it and what stands before it can be
    given by position only.
    """
    names = _parameter_names(schema)
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
    result = returns[0] if len(returns) == 1 else returns or None
    return Signature(parameters, return_annotation=result)


def _parameter_names(schema: FunctionSchema) -> list[str]:
    """Names for a schema's arguments: `self` is `input`, as torch calls it.

    Unless there is one already; and a name that comes twice gets a number.
    """
    names: list[str] = []
    taken = {argument.name for argument in schema.arguments}
    for i, argument in enumerate(schema.arguments):
        name = argument.name
        if name == "self" and "input" not in taken:
            name = "input"
        names.append(f"{name}_{i}" if name in names else name)
    return names


class Overload(NamedTuple):
    """One way to call an operator: its schema, and that as a signature."""

    schema: FunctionSchema
    signature: Signature


_known: Final[WeakKeyDictionary[Operator, Overload]] = WeakKeyDictionary()
"""What was worked out for an OpOverload; forgotten with it and not by its
name, for an operator can be defined again under the same name."""

builtin_name: Final[Callable[[object], str | None]] = _find_builtin
"""`torch.add` → "aten::add"."""


def overloads(op: Operator) -> list[Overload] | None:
    """All ways to call `op`, in torch's order; None if it has no schema.

    Args:
        op: anything callable.

    Cost: O(overloads).  The first question for an operator builds its
    signatures, some 20 µs for each overload.
    """
    if isinstance(op, OpOverload):
        return [_overload(op)]
    if isinstance(op, OpOverloadPacket):
        names: Callable[[], list[str]] = op.overloads
        return [_overload(getattr(op, name)) for name in names()]
    name = builtin_name(op)
    return None if name is None else _overloads_named(name)


def _overload(op: OpOverload[..., Value]) -> Overload:
    """The one way to call an OpOverload."""
    known = _known.get(op)
    if known is None:
        known = Overload(op._schema, _signature(op._schema))
        _known[op] = known
    return known


@functools.cache
def _overloads_named(name: str) -> list[Overload]:
    """All overloads of a builtin operator such as "aten::add"."""
    schemas = _jit_get_schemas_for_operator(name)
    return [Overload(schema, _signature(schema)) for schema in schemas]


@overload
def get_signature_for_torch_op(
    op: Operator, return_schemas: Literal[False] = False
) -> list[Signature] | None: ...
@overload
def get_signature_for_torch_op(
    op: Operator, return_schemas: Literal[True]
) -> tuple[list[Signature] | None, list[FunctionSchema] | None]: ...
def get_signature_for_torch_op(
    op: Operator, return_schemas: bool = False
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

    torch.fx: operator_schemas.py, get_signature_for_torch_op
    """
    found = overloads(op)
    if found is None:
        return (None, None) if return_schemas else None
    signatures = [one.signature for one in found]
    if return_schemas:
        return signatures, [one.schema for one in found]
    return signatures


# -- from call to schema ---------------------------------------------------


def _binds(
    signature: Signature,
    args: tuple[Argument, ...],
    kwargs: Mapping[str, Argument],
) -> bool:
    """Whether the arguments fit the signature, types aside."""
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def check_for_mutable_operation(
    target: Operator,
    args: tuple[Argument, ...],
    kwargs: Mapping[str, Argument],
) -> None:
    """Raise if the call is sure to write into one of its arguments.

    If more than one overload fits the arguments, nothing is sure.

    Raises:
        RuntimeError: the one overload that fits has a mutable schema.

    torch.fx: operator_schemas.py, check_for_mutable_operation
    """
    fitting = [
        one.schema
        for one in overloads(target) or ()
        if _binds(one.signature, args, kwargs)
    ]
    if len(fitting) == 1 and fitting[0].is_mutable:
        raise RuntimeError(
            f"Tried to trace mutable operation {fitting[0]}. FX only supports "
            "functional code, so operations that mutate operands in-place "
            "(e.g. via `out` arguments) are not supported"
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
    try:
        item = _most_general(x)
    except TypeError:  # something in x is no class
        warnings.warn(
            "We were not able to successfully create type hint from the type "
            f"{x}",
            stacklevel=2,
        )
        return x
    if isinstance(x, list):
        return GenericAlias(list, (item,))
    return GenericAlias(tuple, (item, ...))


def _most_general(classes: Sequence[type]) -> object:
    """The one among `classes` that all are subclasses of, or Any."""
    base: type | None = None
    for cls in classes:
        if base is None or issubclass(base, cls):
            base = cls
        elif not issubclass(cls, base):
            return Value
    return Value if base is None else base


def type_matches(signature_type: Value, argument_type: Value) -> bool:
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
        return any(type_matches(one, argument_type) for one in union)
    if origin is list:
        return _list_matches(typing.get_args(signature_type)[0], argument_type)
    if signature_type is int and argument_type is torch.dtype:
        return True  # schemas write dtypes as ints
    classes = isinstance(signature_type, type) and isinstance(
        argument_type, type
    )
    return classes and issubclass(argument_type, signature_type)


def _list_matches(item: Value, argument_type: Value) -> bool:
    """Whether an argument can be given for a list of `item`."""
    if argument_type is int and item is int:
        return True
    container: object = typing.get_origin(argument_type)
    if container not in (list, tuple):
        return False
    given = [one for one in typing.get_args(argument_type) if one is not ...]
    return all(type_matches(item, one) for one in given)


def normalize_function(
    target: Operator,
    args: tuple[Argument, ...],
    kwargs: Mapping[str, Argument] | None = None,
    arg_types: tuple[Value, ...] | None = None,
    kwarg_types: Mapping[str, Value] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """A call's arguments, written in the one way that the signature gives.

    Defaults are filled in.  What was given by position stays so, what comes
    behind goes by keyword.

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
    only_kwargs = normalize_to_only_use_kwargs
    if not isinstance(target, _WITH_SCHEMA) and hasattr(target, "_op"):
        target = target._op  # noqa: SLF001  (ExecuTorch's wrapper of an op)
    if not isinstance(target, _WITH_SCHEMA):
        signature = python_signature(target)
        return _normalize(signature, args, kwargs, only_kwargs)
    fitting = [
        signature
        for signature in get_signature_for_torch_op(target) or ()
        if _binds(signature, args, kwargs)
    ]
    if len(fitting) > 1:
        if arg_types is None and kwarg_types is None:
            raise _ambiguous(target, fitting)
        types = (arg_types or (), kwarg_types or {})
        fitting = [one for one in fitting if _types_fit(one, *types)]
    signature = fitting[0] if fitting else None
    return _normalize(signature, args, kwargs, only_kwargs)


_WITH_SCHEMA: Final = (BuiltinFunctionType, OpOverload, OpOverloadPacket)
"""Types of callables whose signature is read from schemas."""


def _ambiguous(target: Operator, fitting: list[Signature]) -> RuntimeError:
    """The error for a call that more than one overload fits."""
    schemas = "\n".join(map(str, fitting))
    return RuntimeError(
        f"Tried to normalize arguments to {torch.typename(target)} but the "
        "schema match was ambiguous! Please provide argument types to the "
        f"normalize_arguments() call. Available schemas:\n{schemas}"
    )


def _types_fit(
    signature: Signature,
    arg_types: tuple[Value, ...],
    kwarg_types: Mapping[str, Value],
) -> bool:
    """Whether arguments of these types can be given."""
    try:
        bound = signature.bind(*arg_types, **kwarg_types).arguments
    except TypeError:
        return False
    parameters = signature.parameters
    return all(
        type_matches(parameters[name].annotation, given)
        for name, given in bound.items()
    )


def python_signature(function: Callable[..., Value]) -> Signature | None:
    """The signature of a function written in Python; None if there is none.

    Some functions of torch.nn.functional are two, chosen by a flag: their
    signature is that of both, if they agree.
    """
    if function in boolean_dispatched:
        branches = boolean_dispatched[function]
        yes = inspect.signature(inspect.unwrap(branches["if_true"]))
        no = inspect.signature(inspect.unwrap(branches["if_false"]))
        return yes if yes.parameters == no.parameters else None
    try:
        return inspect.signature(inspect.unwrap(function))
    except ValueError:  # written in C
        return None


def _normalize(
    signature: Signature | None,
    args: tuple[Argument, ...],
    kwargs: Mapping[str, Argument],
    only_kwargs: bool,
) -> ArgsKwargsPair | None:
    """The arguments with defaults, as many by position as were given so."""
    if signature is None:
        return None
    parameters = signature.parameters
    nameable = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    by_name = all(one.kind in nameable for one in parameters.values())
    # `uniform(input, from, to)`: only `from` itself cannot be a keyword.
    if not by_name and [*parameters] != ["input", "from", "to", "generator"]:
        return None
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    items = list(bound.arguments.items())
    by_position = 0 if only_kwargs else len(args)
    return ArgsKwargsPair(
        tuple([value for _, value in items[:by_position]]),
        dict(items[by_position:]),
    )


def _normalize_function_or_error(
    target: Operator,
    args: tuple[Argument, ...],
    kwargs: Mapping[str, Argument] | None = None,
    *types_and_flag: Value,
    **types_and_flag_by_name: Value,
) -> ArgsKwargsPair:
    """Do what `normalize_function` does, but raise where it gives None.

    torch.fx: operator_schemas.py, _normalize_function_or_error
    """
    pair = normalize_function(
        target, args, kwargs, *types_and_flag, **types_and_flag_by_name
    )
    if pair is None:
        raise RuntimeError(
            f"Failed to normalize function {target} with args {args} and "
            f"kwargs {kwargs}"
        )
    return pair


def normalize_module(
    root: torch.nn.Module,
    target: str,
    args: tuple[Argument, ...],
    kwargs: Mapping[str, Argument] | None = None,
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
    signature = inspect.signature(inspect.unwrap(module.forward))
    only_kwargs = normalize_to_only_use_kwargs
    return _normalize(signature, args, kwargs or {}, only_kwargs)
