"""Stage 02, use-def: the `inspect.Signature` of an operator or a function.

Every overload of an operator of torch has a schema, such as
`add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`.  As an
`inspect.Signature` it says the same in Python's terms, and Python's `bind`
can then match the arguments of a call with its parameters.

The printed signatures are torch.fx's, so lists are `typing.List`.
"""

from __future__ import annotations

import enum
import functools
import inspect
import numbers
import typing
from collections.abc import Callable
from inspect import Parameter, Signature, _ParameterKind
from types import GenericAlias
from typing import Final, TypeVar

import torch

from ..torch_private.operators import boolean_dispatched
from ..use_def.annotations import signature_of
from ..use_def.values import AnyValue
from .facts import OperatorInfo

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
