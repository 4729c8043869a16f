"""Extra: which functions and classes a saved graph may name.

Anyone can write a file that says `"target": "os.system"`.  So a name in a file
is never imported.  It must be a key of the tables here, which hold functions
that compute values from values, or name an operator of ATen or a method of
tensors whose schema says that it does no more.  The user adds what is missing
by giving the objects themselves, so that `load` need not import them.

A prefix such as `torch.` would admit `torch.load`, and a walk with `getattr`
would reach `torch.hub` through a module that has imported it.  So each function
is listed, here or by torch: `torch.overrides` knows those that take tensors.
"""

from __future__ import annotations

import builtins
import functools
import typing
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from types import BuiltinFunctionType, FunctionType, ModuleType, NoneType
from typing import Final

import torch
from torch import nn
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear as _OutProj
from torch.overrides import get_overridable_functions
from torch.return_types import all_return_types

from ...proxy import assert_fn
from ...schemas.facts import facts_of_overloads
from ...torch_private.modules import (
    INFERENCE_MODE,
    NN,
    enter_autocast,
    exit_autocast,
    switch_gradients,
)
from ...torch_private.operators import has_kernel
from ...torch_private.overloads import OpOverload, OpOverloadPacket, assert_
from ...tracing.inputs import _assert_is_none, _assert_same
from ...use_def.text import _type_repr, pretty_target
from ...use_def.values import AnyValue
from ..effects.effect_tables import OF_PYTHON, PURE_TORCH
from ..example_trace.guards import Guards, answered

_BUILTINS: Final = (
    "abs all any bool complex dict divmod enumerate float frozenset int "
    "isinstance len list max min pow range reversed round set slice "
    "sorted str sum tuple zip"
).split()

_PRIVATE: Final = frozenset(
    "_conj _embedding_bag_forward_only _log_softmax_backward_data _neg_view "
    "_native_batch_norm_legit_functional _prelu_kernel _safe_softmax "
    "_scaled_dot_product_flash_attention_for_cpu _softmax_backward_data "
    "_unsafe_index _unsafe_index_put _unsafe_view".split()
)
"""Operators of aten that traces of common networks record, besides those that
torch tags as core.  Other private ones may trust their arguments too far."""

_METHODS: Final = frozenset(
    "append copy count get index items keys pop update values bfloat16 bool "
    "byte cdouble cfloat char cpu cuda dim double element_size float half int "
    "long ndimension nelement new_tensor numpy short tolist type "
    "unique".split()
)
"""Methods of containers, and those of tensors that are not in aten."""


@functools.cache
def _functions() -> Mapping[str, object]:
    """Name → function, for what is not in torch.ops.

    A name is the one that the printed graph shows.  `operator.call` is left
    out, and so are the builtins that call their arguments.
    """
    state = (switch_gradients, torch.is_grad_enabled, *INFERENCE_MODE)
    state += enter_autocast, exit_autocast, torch.get_autocast_dtype
    of_python = [function for _, function in OF_PYTHON]
    of_python += map(vars(builtins).get, _BUILTINS)
    checks = (assert_, answered, assert_fn, _assert_is_none, _assert_same)
    functions = (*checks, *state, *PURE_TORCH, *of_python, *_of_torch())
    return {pretty_target(function): function for function in functions}


def _of_torch() -> Iterator[object]:
    """Functions of torch that take tensors, or that have a safe schema."""
    plain = BuiltinFunctionType, FunctionType
    for owner, functions in get_overridable_functions().items():
        if isinstance(owner, ModuleType):  # not Tensor
            yield from (f for f in functions if isinstance(f, plain))
    for module in (torch, NN):
        for function in vars(module).values():
            if isinstance(function, BuiltinFunctionType) and _safe(function):
                yield function


def _safe(target: object) -> bool:
    """Whether a target is an operator of aten or prims that only computes."""
    overloads = facts_of_overloads(target) or []
    return any(map(_only_computes, overloads))


def _only_computes(facts: AnyValue) -> bool:
    """Whether an overload has a kernel, opens no file, and checks its input.

    What has no kernel is a function of TorchScript, such as `aten::save`, and
    `from_file` may create the file that it maps into memory.
    """
    namespace, _, base = facts.name.partition("::")
    if namespace not in ("aten", "prims") or base == "from_file":
        return False
    if base.startswith("_") and base not in _PRIVATE:
        return torch.Tag.core in facts.overload.tags
    known: bool = has_kernel(facts.full_name)
    return known


_ATTRIBUTES: Final = frozenset(
    "H T data device dtype grad imag is_cpu is_cuda is_leaf is_meta is_nested "
    "is_quantized is_sparse itemsize layout mH mT nbytes ndim real "
    "requires_grad shape bits eps max min resolution smallest_normal tiny "
    "start step stop L LD LU P Q R S U V Vh bin_edges eigenvalues "
    "eigenvectors exponent hist indices info logabsdet mantissa pivots rank "
    "residuals result sign singular_values solution tau values".split()
)
"""Attributes that a graph may fetch: of tensors, `torch.finfo` and slices, and
of the tuples that functions of torch return.  Those that are methods of tensors
too, such as `max`, only compute.  `getattr(x, "__class__")` is where an escape
from a list of functions would begin."""


_NAMES: Final = {
    builtins: "bool bytes complex dict float frozenset int list object range "
    "set slice str tuple",
    torch: "Tensor Size Generator device dtype finfo iinfo layout "
    "memory_format",
    typing: "Any Callable Dict FrozenSet Iterable List Literal Mapping "
    "NamedTuple Optional Sequence Set Tuple Type Union",
    nn: " ".join(["Parameter", *nn.modules.__all__]),
    torch.return_types: " ".join(t.__name__ for t in all_return_types),
}
_NAMED: Final[Mapping[str, object]] = {
    **{"...": ..., "NoneType": NoneType, "OrderedDict": OrderedDict},
    _type_repr(Guards): Guards,
    f"torch.nn.{_OutProj.__name__}": _OutProj,
    **{
        f"{module.__name__}.{name}": vars(module)[name]
        for module, names in _NAMES.items()
        for name in names.split()
    },
    **{
        str(value): value
        for value in vars(torch).values()
        if isinstance(value, torch.dtype | torch.layout | torch.memory_format)
    },
}
"""Name → class, dtype and the like, and what types are made of."""


class Allowed:
    """What one file may name.

    Attributes:
        named: name → class or another value, but not a function.
    """

    def __init__(self, extra: Iterable[object]) -> None:
        """Add to the tables what the user allows.

        Args:
            extra: functions, operators, classes; a string is a method's name.

        Raises:
            ValueError: two objects have the same name.
        """
        self.named: dict[str, object] = dict(_NAMED)
        self._functions = dict(_functions())
        self._methods: set[object] = {*_METHODS}
        for item in extra:
            if isinstance(item, str):
                self._methods.add(item)
                continue
            is_class = isinstance(item, type)
            name = _type_repr(item) if is_class else pretty_target(item)
            # A traced graph calls the classes of named tuples.
            for table in (self._functions, *[self.named] * is_class):
                if table.setdefault(name, item) is not item:
                    raise ValueError(
                        f"two objects are named {name!r}, so a file cannot "
                        "tell them apart: rename one"
                    )
        tables = (*self._functions.items(), *self.named.items())
        self._names = {id(value): name for name, value in tables}

    def function(self, name: str) -> AnyValue:
        """The function of that name; `getattr` is a target only.

        Raises:
            ValueError: it is not allowed.
        """
        function = self._functions.get(name)
        if function is None and name.startswith("torch.ops."):
            function = _operator(*name.split(".")[2:])
        if function is None:
            raise refused(name, name)
        return function

    def name_of(self, value: object) -> str:
        """The name of a function or class; ValueError if it is not allowed."""
        name = self._names.get(id(value), "")
        if not name:
            is_class = isinstance(value, type)
            name = _type_repr(value) if is_class else pretty_target(value)
            if is_class or self.function(name) is not value:
                raise refused(name, name)
        return name

    def check_target(self, op: str, target: object, args: AnyValue) -> None:
        """Raise ValueError unless a graph may call such a method, or getattr.

        Which class a method belongs to is known only when the graph runs.

        Args:
            op: the opcode of a node.
            target: its target.
            args: its arguments, of which a call of getattr has the name.
        """
        if target is getattr:
            name = args[1] if len(args) > 1 else None
            if type(name) is not str or name not in _ATTRIBUTES:
                raise ValueError(f"getattr of {name!r} is not allowed")
        elif op == "call_method" and target not in self._methods:
            method = getattr(torch.Tensor, str(target), None)
            packet = getattr(torch.ops.aten, str(target), None)
            private = str(target).startswith("_")
            if private or not callable(method) or not _safe(packet):
                raise refused(str(target), repr(target))


def refused(name: str, cure: str) -> ValueError:
    """The error for a name that is not allowed, and what to allow."""
    return ValueError(
        f"{name!r} is not allowed: if you trust it, give it, as in "
        f"`allow=({cure},)`"
    )


def _operator(namespace: str, base: str = "", overload: str = "") -> object:
    """The operator or overload of torch.ops of that name, if it is safe."""
    if namespace not in ("aten", "prims"):
        return None
    target: object = getattr(getattr(torch.ops, namespace), base, None)
    if overload:
        target = getattr(target, overload, None)
    is_one = isinstance(target, OpOverload | OpOverloadPacket)
    return target if is_one and _safe(target) else None
