"""A stand-in for torch: its functions, by how they change a shape.

A function first asks the classes of its arguments, as torch does with
`__torch_function__`; this is how a proxy gets to know of the call.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Final

from ._tensor import (
    AnyValue,
    Tensor,
    asked,
    bool_,
    broadcast,
    dtype,
    float32,
    int64,
)

FUNCTIONS: Final[dict[str, Callable[..., AnyValue]]] = {}
"""The functions of torch, by name."""


def overridable(
    rule: Callable[..., AnyValue], name: str = "", module: str = "torch"
) -> Callable[..., AnyValue]:
    """A function of torch that asks its arguments first."""

    @wraps(rule)
    def function(*args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        found = asked(function, args, kwargs)
        return found[0] if found else rule(*args, **kwargs)

    function.__name__ = function.__qualname__ = name or rule.__name__
    function.__module__ = module
    return function


LISTED: Final[dict[str, AnyValue]] = json.loads(
    Path(__file__).with_name("listed.json").read_text(encoding="utf-8")
)
"""What torch has: docs/machinery/small_torch.py writes it down."""


MADE: Final[dict[tuple[str, str], Callable[..., AnyValue]]] = {}
"""The functions of that list that were asked for, by module and name."""


class NoRule(NotImplementedError):
    """A shape is asked for of which nothing is known here."""


def no_rule(name: str) -> Callable[..., AnyValue]:
    """What is called for a function that has no rule here."""

    def unknown(*args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        raise NoRule(
            f"the small torch of this page has no rule for the shape that "
            f"{name} gives; the installed fx computes it"
        )

    return unknown


def lacking(module: str, name: str) -> AttributeError:
    """The error for a name of torch that is not here."""
    return AttributeError(
        f"the small torch of this page has no {module}.{name}; the installed "
        "fx traces programs with the real one"
    )


def of_torch(
    module: str, name: str, rule: Callable[..., AnyValue] | None = None
) -> Callable[..., AnyValue]:
    """A function of torch, which asks its arguments first.

    One that torch has in Python asks them with all defaults filled in.

    Raises:
        AttributeError: torch has none, or none that can be recorded.
    """
    entry = LISTED["functions"].get(f"{module}.{name}")
    if entry is None:
        raise lacking(module, name)
    key = entry["module"], entry["name"]
    if key not in MADE:
        MADE[key] = _made(entry, rule or no_rule(f"{module}.{name}"))
    return MADE[key]


def _made(
    entry: dict[str, AnyValue], rule: Callable[..., AnyValue]
) -> Callable[..., AnyValue]:
    if "handed" not in entry:
        return overridable(rule, entry["name"], entry["module"])
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature(
        [
            inspect.Parameter(one[0], kind, default=one[1])
            if len(one) == 2
            else inspect.Parameter(one[0], kind)
            for one in entry["parameters"]
        ]
    )

    def function(*args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
        first = tuple(given.pop(n) for n in [*given][: entry["handed"]])
        found = asked(function, first, given)
        return found[0] if found else rule(*first, **given)

    function.__name__ = function.__qualname__ = entry["name"]
    function.__module__ = entry["module"]
    return function


def shape_of(value: AnyValue) -> tuple[int, ...]:
    """The shape of an argument; () for a number."""
    return value.shape if isinstance(value, Tensor) else ()


def dtype_of(*values: AnyValue) -> dtype:
    """The type of a result: the highest, where fractions beat whole numbers."""
    tensors = [one.dtype for one in values if isinstance(one, Tensor)]
    kinds = tensors or [int64]
    best = max(kinds, key=lambda kind: kind.rank)
    fractions = any(isinstance(one, float) for one in values)
    return float32 if fractions and not best.is_floating_point else best


def known(dim: int, count: int) -> int:
    """A dimension counted from the front.

    Raises:
        IndexError: there is none.
    """
    if not -count <= dim < max(count, 1):
        raise IndexError(f"dimension {dim} is out of range of {count}")
    return dim % max(count, 1)


def alike(input: Tensor, *args: AnyValue, **kwargs: AnyValue) -> Tensor:
    """A result of the shape of the first argument."""
    return Tensor(input.shape, input.dtype)


def joined(*args: AnyValue, **kwargs: AnyValue) -> Tensor:
    """A result of the shape that all arguments fit."""
    return Tensor(broadcast(*map(shape_of, args)), dtype_of(*args))


def divided(input: AnyValue, other: AnyValue, **kwargs: AnyValue) -> Tensor:
    """As `joined`, with fractions."""
    kind = dtype_of(input, other)
    kind = kind if kind.is_floating_point else float32
    return Tensor(broadcast(shape_of(input), shape_of(other)), kind)


def compared(input: AnyValue, other: AnyValue) -> AnyValue:
    """As `joined`, with yes or no for each number."""
    if not isinstance(other, (Tensor, int, float)):
        return NotImplemented
    return Tensor(broadcast(shape_of(input), shape_of(other)), bool_)


def reduced(
    input: Tensor,
    dim: AnyValue = None,
    keepdim: bool = False,
    *,
    dtype: dtype | None = None,
) -> Tensor:
    """A result without the dimensions that are summed up."""
    dims = range(input.ndim) if dim is None else dim
    dims = [dims] if isinstance(dims, int) else dims
    gone = {known(one, input.ndim) for one in dims}
    shape = [
        1 if at in gone else size
        for at, size in enumerate(input.shape)
        if keepdim or at not in gone
    ]
    return Tensor(shape, dtype or input.dtype)


def found_at(
    input: Tensor, dim: int | None = None, keepdim: bool = False
) -> Tensor:
    """As `reduced`, with places."""
    return reduced(input, dim, keepdim, dtype=int64)


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The product of two matrices, or of many."""
    a, b = list(input.shape), list(other.shape)
    left, right = [1, *a] if len(a) == 1 else a, [*b, 1] if len(b) == 1 else b
    if left[-1] != right[-2]:
        raise RuntimeError(f"matrices of {a} and {b} cannot be multiplied")
    shape = broadcast(left[:-2], right[:-2])
    shape += [left[-2]] * (len(a) > 1) + [right[-1]] * (len(b) > 1)
    return Tensor(shape, dtype_of(input, other))


def addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, **more: AnyValue
) -> Tensor:
    """A product and a sum."""
    return joined(input, matmul(mat1, mat2))


def cat(tensors: Iterable[Tensor], dim: int = 0) -> Tensor:
    """Tensors one behind the other."""
    first, *rest = tensors
    shape, at = list(first.shape), known(dim, first.ndim)
    for one in rest:
        if [*one.shape[:at], *one.shape[at + 1 :]] != [
            *first.shape[:at],
            *first.shape[at + 1 :],
        ]:
            raise RuntimeError(f"{first.shape} and {one.shape} do not fit")
        shape[at] += one.shape[at]
    return Tensor(shape, dtype_of(first, *rest))


def stack(tensors: Iterable[Tensor], dim: int = 0) -> Tensor:
    """Tensors on top of each other."""
    every = list(tensors)
    at = known(dim, every[0].ndim + 1)
    shape = list(broadcast(*(one.shape for one in every)))
    return Tensor([*shape[:at], len(every), *shape[at:]], every[0].dtype)


def split(
    tensor: Tensor, split_size_or_sections: AnyValue, dim: int = 0
) -> tuple[Tensor, ...]:
    """Parts of a tensor."""
    at = known(dim, tensor.ndim)
    whole, sizes = tensor.shape[at], split_size_or_sections
    if isinstance(sizes, int):
        starts = range(0, whole, sizes)
        sizes = [min(sizes, whole - start) for start in starts]
    head, tail = tensor.shape[:at], tensor.shape[at + 1 :]
    return tuple(Tensor([*head, n, *tail], tensor.dtype) for n in sizes)


def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """So many parts of a tensor."""
    size = input.shape[known(dim, input.ndim)]
    return split(input, -(-size // chunks), dim)


def reshape(input: Tensor, *shape: AnyValue) -> Tensor:
    """The same numbers in another shape."""
    whole = shape[0] if shape and not isinstance(shape[0], int) else shape
    sizes, rest = list(whole), -math.prod(whole)
    if -1 in sizes:
        sizes[sizes.index(-1)] = input.numel() // (rest or 1)
    if math.prod(sizes) != input.numel():
        raise RuntimeError(
            f"shape {list(whole)} is invalid for input of size {input.numel()}"
        )
    return Tensor(sizes, input.dtype)


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Several dimensions as one."""
    start, end = known(start_dim, input.ndim), known(end_dim, input.ndim)
    inner = math.prod(input.shape[start : end + 1])
    shape = [*input.shape[:start], inner, *input.shape[end + 1 :]]
    return Tensor(shape, input.dtype)


def permute(input: Tensor, *dims: AnyValue) -> Tensor:
    """Dimensions in another order."""
    order = dims[0] if dims and not isinstance(dims[0], int) else dims
    shape = [input.shape[known(d, input.ndim)] for d in order]
    return Tensor(shape, input.dtype)


def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two dimensions exchanged."""
    order = list(range(input.ndim))
    a, b = known(dim0, input.ndim), known(dim1, input.ndim)
    order[a], order[b] = b, a
    return permute(input, order)


def t(input: Tensor) -> Tensor:
    """The transposed matrix."""
    return transpose(input, 0, 1) if input.ndim > 1 else alike(input)


def squeeze(input: Tensor, dim: int | None = None) -> Tensor:
    """Without dimensions of size 1."""
    shape = [
        size
        for at, size in enumerate(input.shape)
        if size != 1 or dim not in (None, at, at - input.ndim)
    ]
    return Tensor(shape, input.dtype)


def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """With one more dimension."""
    at = known(dim, input.ndim + 1)
    shape = [*input.shape[:at], 1, *input.shape[at:]]
    return Tensor(shape, input.dtype)


def expand(input: Tensor, *sizes: AnyValue) -> Tensor:
    """As if repeated."""
    whole = sizes[0] if sizes and not isinstance(sizes[0], int) else sizes
    padded = [1] * (len(whole) - input.ndim) + list(input.shape)
    shape = [b if a == -1 else a for a, b in zip(whole, padded, strict=True)]
    return Tensor(shape, input.dtype)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: AnyValue = 1,
    padding: AnyValue = 0,
    dilation: AnyValue = 1,
    groups: int = 1,
) -> Tensor:
    """A convolution of images."""
    channels, inner, *size = weight.shape
    if input.shape[-3] != inner * groups:
        raise RuntimeError(
            f"weight of {list(weight.shape)} expects {inner * groups} "
            f"channels, and the input has {input.shape[-3]}"
        )
    space = pooled(input.shape[-2:], size, stride, padding, dilation)
    return Tensor([*input.shape[:-3], channels, *space], input.dtype)


def pooled(
    sizes: Iterable[int],
    kernel: AnyValue,
    stride: AnyValue,
    padding: AnyValue = 0,
    dilation: AnyValue = 1,
) -> list[int]:
    """Sizes of an image after a window has passed over it."""
    pairs = [
        one if isinstance(one, (tuple, list)) else (one, one)
        for one in (kernel, stride, padding, dilation)
    ]
    return [
        (size + 2 * p - d * (k - 1) - 1) // s + 1
        for size, k, s, p, d in zip(sizes, *pairs, strict=True)
    ]


def where(condition: Tensor, input: AnyValue, other: AnyValue) -> Tensor:
    """One of two values for each number."""
    shapes = map(shape_of, (condition, input, other))
    return Tensor(broadcast(*shapes), dtype_of(input, other))


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, *args: AnyValue, **more: AnyValue
) -> Tensor:
    """Values, mixed by how much the keys are like the queries."""
    return Tensor([*query.shape[:-1], value.shape[-1]], query.dtype)


def embedding(input: Tensor, weight: Tensor, **more: AnyValue) -> Tensor:
    """The rows of a matrix with some numbers."""
    return Tensor([*input.shape, weight.shape[-1]], weight.dtype)


def lost(input: Tensor, *args: AnyValue, **more: AnyValue) -> Tensor:
    """One number, or one for each if they are not reduced."""
    return Tensor((), input.dtype)


def topk(
    input: Tensor, k: int, dim: int = -1, *args: AnyValue, **more: AnyValue
) -> tuple[Tensor, Tensor]:
    """The largest numbers, and where they are."""
    at = known(dim, input.ndim)
    shape = [*input.shape[:at], k, *input.shape[at + 1 :]]
    return Tensor(shape, input.dtype), Tensor(shape, int64)


def einsum(equation: str, *operands: Tensor) -> Tensor:
    """A sum of products, by letters."""
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    if not arrow or "." in equation:
        no_rule("torch.einsum with ... or without an arrow")()
    sizes: dict[str, int] = {}
    for letters, one in zip(inputs.split(","), operands, strict=True):
        for letter, size in zip(letters, one.shape, strict=True):
            if sizes.setdefault(letter, size) != size:
                raise RuntimeError(f"{letter} is {sizes[letter]} and {size}")
    return Tensor([sizes[letter] for letter in output], operands[0].dtype)


def made(*size: AnyValue, dtype: dtype = float32, **more: AnyValue) -> Tensor:
    """A new tensor of a shape."""
    whole = size[0] if size and not isinstance(size[0], int) else size
    return Tensor(whole, dtype)


def tensor(data: AnyValue, *, dtype: dtype | None = None) -> Tensor:
    """A new tensor with the shape of nested lists."""
    shape, inner = list[int](), data
    while isinstance(inner, (list, tuple)):
        shape.append(len(inner))
        inner = inner[0] if inner else 0.0
    kind = {bool: bool_, int: int64}.get(type(inner), float32)
    return Tensor(shape, dtype or kind)


def arange(*ends: int, dtype: dtype = int64) -> Tensor:
    """Numbers in a row."""
    return Tensor([len(range(*ends))], dtype)


_RULES: Final = (
    (
        "relu sigmoid tanh exp log sqrt rsqrt abs neg sin cos sign floor ceil "
        "round square reciprocal softmax log_softmax dropout clamp clone erf "
        "detach cumsum flip triu tril masked_fill layer_norm batch_norm relu_ "
        "zeros_like ones_like rand_like randn_like randint_like bernoulli "
        "multinomial normal poisson",
        alike,
    ),
    (
        "add sub mul pow maximum minimum remainder floor_divide fmod "
        "bitwise_and bitwise_or bitwise_xor add_ sub_ mul_",
        joined,
    ),
    ("div true_divide", divided),
    ("eq ne lt le gt ge logical_and logical_or", compared),
    ("sum mean prod amax amin std var norm max min", reduced),
    ("argmax argmin", found_at),
    ("matmul mm bmm mv dot", matmul),
    ("zeros ones rand randn empty randint randperm", made),
)
_OWN: Final = (addmm, cat, stack, split, chunk, reshape, flatten, permute)
_MORE: Final = (transpose, t, squeeze, unsqueeze, conv2d, where, topk)
FACTORIES: Final = "zeros ones rand randn empty randint randperm".split()
_METHODS: Final = {
    "view": reshape,
    "expand": expand,
    "__floordiv__": joined,
    **dict.fromkeys("contiguous float half double to cpu cuda".split(), alike),
}
_INVERSE: Final = {
    "add": "radd",
    "sub": "rsub",
    "mul": "rmul",
    "div": "rtruediv",
    "pow": "rpow",
}
_MAGIC: Final = {
    "div": "truediv",
    "remainder": "mod",
    "bitwise_and": "and",
    "bitwise_or": "or",
    "bitwise_xor": "xor",
}


def _define() -> None:
    """Fill FUNCTIONS."""
    for names, rule in _RULES:
        for name in names.split():
            FUNCTIONS[name] = overridable(rule, name)
    for own in (*_OWN, *_MORE):
        FUNCTIONS[own.__name__] = overridable(own)
    FUNCTIONS["einsum"] = of_torch("torch.functional", "einsum", einsum)


def _give_methods() -> None:
    """Give tensors the methods of the same names, and operators."""
    beside = {
        *FACTORIES,
        *(one.__name__ for one in (cat, stack, where, conv2d, einsum)),
    }
    for name, function in FUNCTIONS.items():
        if name not in beside:
            _method(name, getattr(function, "__wrapped__", function))
    for name, rule in _METHODS.items():
        _method(name, rule)
    for name in "add sub mul matmul pow eq ne lt le gt ge neg abs".split():
        setattr(Tensor, f"__{name}__", getattr(Tensor, name))
    for name, magic in _MAGIC.items():
        setattr(Tensor, f"__{magic}__", getattr(Tensor, name))
    for name, magic in _INVERSE.items():
        setattr(Tensor, f"__{magic}__", _turned(getattr(Tensor, name)))
    for name in ("T", "mT"):
        setattr(Tensor, name, property(t))


def _method(name: str, rule: Callable[..., AnyValue]) -> None:
    """Give tensors a method."""
    made = overridable(rule, name, "torch._tensor")
    made.__qualname__ = f"Tensor.{name}"
    setattr(Tensor, name, made)


def _turned(method: Callable[..., AnyValue]) -> Callable[..., AnyValue]:
    """A method with its two arguments exchanged."""
    return lambda self, other: method(other, self)


_define()
_give_methods()
