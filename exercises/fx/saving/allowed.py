"""Stage 05, codegen: which functions and classes a saved graph may name.

Anyone can write a file that says `"target": "os.system"`.  So a name in a file
is never imported and never looked up with `getattr`: it is a key of the tables
here, which hold functions that compute values from values, and nothing else.
The user adds what is missing by giving the objects themselves.
"""

from __future__ import annotations

import builtins
import cmath
import functools
import math
import operator
import typing
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from types import (
    BuiltinFunctionType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    NoneType,
)
from typing import Final

import torch
from torch import nn
from torch._C import _dispatch_has_kernel, _nn, _set_grad_enabled
from torch._ops import OpOverload, OpOverloadPacket
from torch.amp.autocast_mode import _enter_autocast, _exit_autocast
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear
from torch.overrides import get_overridable_functions

from ..memory.effect_tables import PURE_TORCH
from ..memory.facts import facts_of_overloads
from ..text.qualified_names import _type_repr, pretty_target
from ..usedef.values import Value

_BUILTINS: Final = (
    "abs all any bool complex dict divmod enumerate float frozenset int "
    "isinstance len list max min pow range reversed round set slice "
    "sorted str sum tuple zip"
).split()

_OTHERS: Final = (
    torch._assert,
    _set_grad_enabled,
    _enter_autocast,
    _exit_autocast,
)

_PRIVATE: Final = frozenset(
    "_conj _embedding_bag_forward_only _log_softmax_backward_data _neg_view "
    "_native_batch_norm_legit_functional _prelu_kernel _safe_softmax "
    "_scaled_dot_product_flash_attention_for_cpu _softmax_backward_data "
    "_unsafe_index _unsafe_index_put _unsafe_view".split()
)
"""Operators of aten that traces of common networks record, besides those that
torch tags as core.  Other private ones may trust their arguments too far."""

_CONTAINER_METHODS: Final = frozenset(
    "append copy count get index items keys pop update values".split()
)
_CONVERSIONS: Final = frozenset(
    "bfloat16 bool byte cdouble cfloat char cpu cuda double element_size float "
    "half int long ndimension nelement new_tensor numpy short tolist type "
    "unique".split()
)
"""Methods of tensors that no operator of aten stands for."""


@functools.cache
def _functions() -> Mapping[str, object]:
    """Name → function, for what is not in torch.ops."""
    found: list[object] = [*PURE_TORCH, *_OTHERS, *_of_python(), *_of_torch()]
    return {pretty_target(function): function for function in found}


def _of_python() -> Iterator[object]:
    """Functions of Python: builtins, `operator` and `math`."""
    yield from map(vars(builtins).get, _BUILTINS)
    for module in (cmath, math, operator):
        for function in vars(module).values():
            is_function = isinstance(function, BuiltinFunctionType)
            if is_function and function.__name__ != "call":
                yield function


def _of_torch() -> Iterator[object]:
    """Functions of torch that take tensors, or that have a safe schema."""
    for owner, functions in get_overridable_functions().items():
        if isinstance(owner, type(torch)):  # not Tensor, nor an attribute
            for function in functions:
                if isinstance(function, BuiltinFunctionType | FunctionType):
                    yield function
    for module in (torch, _nn, nn.functional):
        for function in vars(module).values():
            if isinstance(function, BuiltinFunctionType) and _safe(function):
                yield function


def _safe(target: object) -> bool:
    """Whether a target is an operator of aten or prims that only computes."""
    overloads = facts_of_overloads(target) or []
    return any(map(_only_computes, overloads))


def _only_computes(facts: Value) -> bool:
    """Whether an overload has a kernel, opens no file, and checks its input."""
    namespace, _, base = facts.name.partition("::")
    if namespace not in ("aten", "prims") or base == "from_file":
        return False
    if base.startswith("_") and base not in _PRIVATE:
        return torch.Tag.core in facts.overload.tags
    known: bool = _dispatch_has_kernel(facts.full_name)
    return known


@functools.cache
def _attributes() -> frozenset[str]:
    """Attributes that a graph may fetch from its values: none is a method."""
    holders = (torch._C.TensorBase, torch.finfo, torch.iinfo, slice)
    plain = (GetSetDescriptorType, MemberDescriptorType, property)
    return frozenset(
        name
        for holder in (*holders, *torch.return_types.all_return_types)
        for name, held in vars(holder).items()
        if isinstance(held, plain) and not name.startswith("_")
    ) - {"grad_fn"}


_TYPES: Final[Mapping[str, object]] = {
    **{
        kind.__name__: kind
        for kind in (
            *(bool, bytes, complex, dict, float, frozenset, int, list),
            *(NoneType, object, OrderedDict, range, set, slice, str, tuple),
        )
    },
    **{
        f"torch.{name}": vars(torch)[name]
        for name in "Tensor Size Generator device dtype finfo iinfo layout "
        "memory_format".split()
    },
    **{
        f"typing.{name}": getattr(typing, name)
        for name in "Any Callable Dict FrozenSet Iterable List Literal "
        "Mapping NamedTuple Optional Sequence Set Tuple Type Union".split()
    },
    "torch.nn.Parameter": nn.Parameter,
}

_MODULES: Final[Mapping[str, type[nn.Module]]] = {
    f"torch.nn.{kind.__name__}": kind
    for kind in (
        *map(vars(nn.modules).get, nn.modules.__all__),
        NonDynamicallyQuantizableLinear,
    )
    if isinstance(kind, type) and issubclass(kind, nn.Module)
}


class Allowed:
    """What one file may name.

    Attributes:
        classes: name → class, or another object of which types are made.
    """

    def __init__(self, extra: Iterable[object]) -> None:
        """Add to the tables what the user allows.

        Args:
            extra: functions, operators, classes; a string is a method's name.

        Raises:
            ValueError: two of them, or one and another function of the tables,
                have the same name.
        """
        self.classes: dict[str, object] = {**_TYPES, **_MODULES}
        self._functions: dict[str, object] = {}
        self._methods: set[str] = set()
        for each in extra:
            if isinstance(each, str):
                self._methods.add(each)
                continue
            made = isinstance(each, type)
            name = _type_repr(each) if made else pretty_target(each)
            table = self.classes if made else self._functions
            if table.setdefault(name, each) is not each or (
                not made and _functions().get(name, each) is not each
            ):
                raise ValueError(
                    f"two objects are named {name!r}, so a file cannot tell "
                    "them apart: rename one"
                )
        self._names = {id(kind): name for name, kind in self.classes.items()}

    def function(self, name: str) -> Value:
        """The function of that name; `getattr` is a target only.

        Raises:
            ValueError: it is not allowed.
        """
        found = self._functions.get(name, _functions().get(name))
        if found is None and name.startswith("torch.ops."):
            found = _operator(*name.split(".")[2:])
        if found is None:
            raise ValueError(
                f"the function {name!r} is not allowed: if you trust it, give "
                f"it, as in `allow=({name},)`"
            )
        return found

    def name_of(self, function: object) -> str:
        """The name of a function that is allowed; ValueError for others."""
        name = pretty_target(function)
        if self.function(name) is not function:
            raise ValueError(f"{name!r} is not the name of {type(function)}")
        return name

    def class_name(self, kind: object) -> str | None:
        """The name of a class that is allowed, else None."""
        return self._names.get(id(kind))

    def check_method(self, name: str) -> None:
        """Raise ValueError unless a graph may call a method of that name."""
        if name not in self._methods and not _is_method(name):
            raise ValueError(
                f"the method {name!r} is not allowed: if you trust it on "
                f"every object, allow it, as in `allow=({name!r},)`"
            )


def check_attribute(args: tuple[object, ...]) -> None:
    """Raise ValueError unless `getattr(*args)` fetches harmless data."""
    name = args[1] if len(args) > 1 else None
    if type(name) is not str or name not in _attributes():
        raise ValueError(f"getattr of {name!r} is not allowed")


@functools.cache
def _is_method(name: str) -> bool:
    """Whether it is a method of containers, or a harmless one of tensors."""
    if name in _CONTAINER_METHODS or name in _CONVERSIONS:
        return True
    if name.startswith("_") or not callable(getattr(torch.Tensor, name, None)):
        return False
    return _safe(getattr(torch.ops.aten, name, None))


def _operator(
    namespace: str = "", base: str = "", overload: str = ""
) -> object | None:
    """The operator or overload of torch.ops of that name, if it is safe."""
    if namespace not in ("aten", "prims"):
        return None
    found: object = getattr(getattr(torch.ops, namespace), base, None)
    if overload and isinstance(found, OpOverloadPacket):
        found = getattr(found, overload, None)
    wanted = OpOverload if overload else OpOverloadPacket
    return found if isinstance(found, wanted) and _safe(found) else None
