"""Extra: what torch's rules for tensors without data have given in a trace.

Torch computes in Python what an operator gives for symbolic sizes, often by
taking the operator apart, and that is most of the time of a trace. But layers
are alike. So a call is remembered by all that its rule can see: dtypes, sizes
and strides, no values. If it comes again, its result is made of the sizes that
the first one had. What the rule asked of sizes was noted then.

What is computed item by item, and batch norm, keeps the sizes of what it is
given. If that is contiguous, the call is remembered for all sizes.

Only operators of torch's own are remembered, that give no view, and do not
depend on values. Their results are new memory, or the first argument.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from typing import Final, NamedTuple

import torch

from ..use_def.values import AnyValue, Args, Kwargs
from .fake_tensors import FakeTensor, FakeTensorMode
from .names import find, find_or
from .overloads import OpOverload

_in_kernel: Final[
    Callable[[FakeTensorMode], AbstractContextManager[AnyValue]]
] = find(
    "torch._subclasses.fake_tensor:in_kernel_invocation_manager",
    needed_for="fx.trace",
)
_uses_mkldnn: Final[Callable[[], bool]] = find_or(
    "torch._C:_get_mkldnn_enabled",
    bool,
    without="a trace that turns mkldnn off inside takes it for on",
)
_is_zero: Final[Callable[[torch.Tensor], bool]] = find(
    "torch:_is_zerotensor", needed_for="fx.trace"
)

_PLAIN: Final = frozenset(
    (
        *(int, float, bool, str, type(None), torch.dtype, torch.device),
        *(torch.layout, torch.memory_format),
    )
)
_HIDDEN: Final = frozenset(
    (
        torch.Tag.data_dependent_output,
        torch.Tag.dynamic_output_shape,
        torch.Tag.inplace_view,
    )
)
_NORMS: Final = (
    "aten::_native_batch_norm_legit",
    "aten::_native_batch_norm_legit_no_training",
)


class _Unknown(Exception):
    """A call, or a result, is of a kind that is not remembered."""


class _Made(NamedTuple):
    """One tensor of a result.

    Attributes:
        like: which argument has its sizes and strides; None if these are given.
        shape: its sizes.
        stride: its strides.
        dtype: of its items.
        device: of the tensor.
    """

    like: int | None
    shape: AnyValue
    stride: AnyValue
    dtype: torch.dtype
    device: torch.device


class _Result(NamedTuple):
    """What a call gave.

    Attributes:
        made: the tensors; without any, it is the first argument.
        kind: a tuple or list of them, or the tensor itself.
    """

    made: tuple[_Made, ...]
    kind: AnyValue


def remembering(
    rule: Callable[..., AnyValue],
    known: dict[AnyValue, AnyValue],
    mode: FakeTensorMode,
    call: tuple[AnyValue, AnyValue, Args, Kwargs],
) -> AnyValue:
    """What a rule gives, or gave for the same call.

    Args:
        rule: computes it: `FakeTensorMode.__torch_dispatch__`.
        known: what was given so far.
        mode: has the rule.
        call: the operator, types, and arguments by position and by name.
    """
    func, _, args, kwargs = call
    keys = []
    if _is_remembered(func):
        for is_alike in (True, False)[not _keeps_sizes(func) :]:
            try:
                keys.append(_key(mode, func, args, kwargs, is_alike=is_alike))
            except _Unknown:
                continue
            noted = known.get(keys[-1])
            if noted is not None:
                return _again(mode, noted, args)
    result = rule(mode, *call)
    for key in keys:  # a call that has changed its arguments is not kept
        is_alike = key[0]
        try:
            same = key == _key(mode, func, args, kwargs, is_alike=is_alike)
            if same and key not in known:
                known[key] = _noted(result, args, is_alike=is_alike)
        except _Unknown:
            known[key] = None
    return result


@cache
def _is_remembered(func: AnyValue) -> bool:
    """Whether calls of an operator are: it hides nothing, and gives no view."""
    if not isinstance(func, OpOverload) or getattr(func, "is_view", False):
        return False
    schema = func._schema
    written = [arg.alias_info for arg in schema.arguments]
    given = [each.alias_info for each in schema.returns]
    is_in_place = schema.name[-1] == "_" and not any(written[1:])
    is_new = not any(written) or schema.name in _NORMS
    return (
        func.namespace in ("aten", "prims")
        and _HIDDEN.isdisjoint(func.tags)
        and ((is_new and not any(given)) or (is_in_place and len(given) == 1))
    )


@cache
def _keeps_sizes(func: AnyValue) -> bool:
    """Whether what an operator gives has the sizes of its first argument."""
    name = func._schema.name
    bare = name.partition("::")[2].rstrip("_")
    plain: AnyValue = getattr(torch.ops.aten, bare, None)
    plain = getattr(plain, func._overloadname, func)  # noqa: SLF001
    tags = {*func.tags, *plain.tags}
    return name in _NORMS or torch.Tag.pointwise in tags


def _key(
    mode: FakeTensorMode,
    func: AnyValue,
    args: Args,
    kwargs: Kwargs,
    *,
    is_alike: bool,
) -> tuple[AnyValue, ...]:
    """All that the rule of a call can see.

    Args:
        mode: of the tensors.
        func: the operator.
        args: of the operator.
        kwargs: and by name.
        is_alike: whether sizes are left out.

    Raises:
        _Unknown: it is not all; or sizes matter, and should be left out.
    """
    key: list[AnyValue] = [
        *(is_alike, func, func.name(), torch.get_default_dtype()),
        *(torch.is_inference_mode_enabled(), torch.is_grad_enabled()),
        *(torch.are_deterministic_algorithms_enabled(), _uses_mkldnn()),
    ]
    first = None
    if is_alike:
        if not args or not isinstance(args[0], FakeTensor):
            raise _Unknown
        first = _sizes(args[0].shape)
    for name, value in (*enumerate(args), *kwargs.items()):
        key.append(name)
        _add(key, mode, value, first)
    return tuple(key)


def _add(
    key: list[AnyValue],
    mode: FakeTensorMode,
    value: AnyValue,
    first: tuple[AnyValue, ...] | None,
) -> None:
    """Add to a key what a rule can see of an argument."""
    kind = type(value)
    if kind in _PLAIN:
        key += (kind, value)
    elif kind is torch.SymInt:
        key += (kind, *_sizes([value]))
    elif kind in (list, tuple):
        key += (kind, len(value))
        for item in value:
            _add(key, mode, item, first)
    elif not _is_dense(value) or value.fake_mode is not mode:
        raise _Unknown
    else:
        sizes, strides = _sizes(value.shape), _sizes(value.stride())
        key += (value.dtype, value.device, value.requires_grad, len(sizes))
        key.append(value.is_inference())
        if first is None:
            key += (*sizes, *strides, *_sizes([value.storage_offset()]))
        elif (
            sizes != first and (key[2] not in _NORMS or sizes != first[1:2])
        ) or not _is_contiguous(sizes, strides):
            raise _Unknown
        else:
            key.append(sizes == first)


def _sizes(sizes: AnyValue) -> tuple[AnyValue, ...]:
    """Sizes as ints and expressions of sympy."""
    return tuple(
        n if type(n) is int else n.node._expr  # noqa: SLF001
        for n in sizes
    )


def _is_dense(value: AnyValue) -> bool:
    """Whether it is a tensor without data, of which a key says all."""
    return (
        isinstance(value, FakeTensor)
        and value.constant is None
        and value.layout == torch.strided
        and not (value.is_quantized or value.is_conj() or value.is_neg())
        and not _is_zero(value)
    )


def _is_contiguous(
    sizes: tuple[AnyValue, ...], strides: tuple[AnyValue, ...]
) -> bool:
    """Whether strides are those that torch gives to new memory."""
    expected: AnyValue = 1
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size == 0 or stride != expected:
            return False
        expected = expected * size
    return True


def _noted(result: AnyValue, args: Args, *, is_alike: bool) -> _Result:
    """What is remembered of a result.

    Raises:
        _Unknown: it cannot be made again.
    """
    if args and result is args[0]:
        return _Result((), None)
    kind = type(result) if type(result) in (tuple, list) else None
    tensors = [*result] if kind else [result]
    if not tensors or not all(map(_is_dense, tensors)):
        raise _Unknown
    given = {n: x for n, x in enumerate(args) if isinstance(x, FakeTensor)}
    before = {*map(_memory, given.values())}
    after = {*before, *map(_memory, tensors)}
    if len(after) != len(before) + len(tensors):
        raise _Unknown
    made = []
    for tensor in tensors:
        offset = tensor.storage_offset()
        if type(offset) is not int or offset or tensor.requires_grad:
            raise _Unknown
        layout, like = _layout(tensor), None
        if is_alike and layout != ((0,), (1,)):
            alike = [n for n, x in given.items() if _layout(x) == layout]
            if not alike:
                raise _Unknown
            like = alike[0]
        sizes = tuple(tensor.shape), tensor.stride()
        made.append(_Made(like, *sizes, tensor.dtype, tensor.device))
    return _Result(tuple(made), kind)


def _memory(tensor: torch.Tensor) -> int:
    """What tensors have in common that share memory."""
    memory: int = tensor.untyped_storage()._cdata  # noqa: SLF001
    return memory


def _layout(tensor: torch.Tensor) -> tuple[AnyValue, ...]:
    """The sizes and strides of a tensor, as ints and expressions."""
    return _sizes(tensor.shape), _sizes(tensor.stride())


def _again(mode: FakeTensorMode, noted: _Result, args: Args) -> AnyValue:
    """A result like the first one."""
    if not noted.made:
        return args[0]
    with _in_kernel(mode):
        empty = []
        for each in noted.made:
            sizes = each.shape, each.stride
            if each.like is not None:
                sizes = args[each.like].shape, args[each.like].stride()
            dtype = each.dtype
            empty.append(
                torch.empty_strided(*sizes, dtype=dtype, device="meta")
            )
    tensors = [
        FakeTensor(mode, tensor, each.device)
        for tensor, each in zip(empty, noted.made, strict=True)
    ]
    return noted.kind(tensors) if noted.kind else tensors[0]
