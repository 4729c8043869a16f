"""A stand-in for torch: the shapes and dtypes of results.

A rule reads each of its parameters, or they do not matter for shape and dtype.
It raises RuntimeError or OutOfRange for what torch refuses; any other error,
such as that of a parameter that it does not have, means that it does not know.
"""

from __future__ import annotations

from collections import namedtuple
from functools import reduce
from typing import NoReturn

from ._tensor import (
    AnyValue,
    NoRule,
    OutOfRange,
    Tensor,
    bool_,
    broadcast,
    complex64,
    complex128,
    dtype,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)

Found = namedtuple("Found", "values indices")
"""What the largest numbers are, and where."""


def need(*conditions: AnyValue) -> None:
    """Say that a result is not known unless all of some conditions hold."""
    if not all(conditions):
        raise NoRule


def refuse(text: str) -> NoReturn:
    """Say that torch refuses a call."""
    raise RuntimeError(text)


# --- dtypes -----------------------------------------------------------------


def higher(a: dtype, b: dtype) -> dtype:
    """The type that has the numbers of both."""
    if {a, b} == {uint8, int8}:
        return int16
    if a.rank in (6, 7) and b.rank in (6, 7) and a is not b:
        return float32
    if {a, b} == {complex64, float64}:
        return complex128
    return max(a, b, key=lambda one: one.rank)


def dtype_of(*values: AnyValue) -> dtype:
    """The type of a result.

    A number, or a tensor of one, counts only with a higher category than that
    of the tensors with dimensions.
    """
    kinds: list[list[dtype]] = [[], [], []]
    numbers = {bool: bool_, int: int64, float: float32, complex: complex64}
    for value in values:
        if isinstance(value, Tensor):
            kinds[1 + (value.ndim > 0)].append(value.dtype)
        else:
            kinds[0].append(numbers[type(value)])
    best = [reduce(higher, kind) for kind in kinds if kind]
    found = reduce(lambda a, b: a if a.category > b.category else b, best)
    need(not found.is_complex or float16 not in best)
    return reduce(higher, best) if found.is_complex else found


def floats(*tensors: Tensor) -> dtype:
    """The only type of some tensors, which has fractions."""
    kind = tensors[0].dtype
    need(kind.is_floating_point, *(one.dtype is kind for one in tensors))
    return kind


def same(*tensors: Tensor) -> dtype:
    """The only type of some tensors."""
    kinds = {one.dtype for one in tensors}
    if len(kinds) > 1:
        refuse(f"the tensors have several dtypes: {[*kinds]}")
    return kinds.pop()


def fraction(kind: dtype) -> dtype:
    """A type with fractions."""
    return kind if kind.category > 1 else float32


# --- element by element -----------------------------------------------------


def shape_of(value: AnyValue) -> tuple[int, ...]:
    """The shape of an argument; () for a number."""
    return value.shape if isinstance(value, Tensor) else ()


def alike(input: Tensor) -> Tensor:
    """A result of the shape and type of its argument."""
    return Tensor(input.shape, input.dtype)


def counted(input: Tensor) -> Tensor:
    """As `alike`, of numbers."""
    need(input.dtype is not bool_)
    return alike(input)


def fractions(input: Tensor) -> Tensor:
    """As `alike`, with fractions."""
    return Tensor(input.shape, fraction(input.dtype))


def of_floats(input: Tensor) -> Tensor:
    """As `alike`, of fractions only."""
    return Tensor(input.shape, floats(input))


def asked_whether(input: Tensor) -> Tensor:
    """Yes or no for each number."""
    return Tensor(input.shape, bool_)


def joined(input: AnyValue, other: AnyValue) -> Tensor:
    """A result of the shape that all arguments fit."""
    need(isinstance(input, Tensor) or isinstance(other, Tensor))
    shape = broadcast(shape_of(input), shape_of(other))
    return Tensor(shape, dtype_of(input, other))


def calculated(input: AnyValue, other: AnyValue) -> Tensor:
    """As `joined`, of numbers only."""
    for one in (input, other):
        need(dtype_of(one) is not bool_)
    return joined(input, other)


def divided(input: AnyValue, other: AnyValue) -> Tensor:
    """As `calculated`; a number to divide by is not 0."""
    need(isinstance(other, Tensor) or other)
    return calculated(input, other)


def paired(input: Tensor, other: Tensor) -> Tensor:
    """As `calculated`, of tensors only."""
    need(isinstance(input, Tensor), isinstance(other, Tensor))
    return calculated(input, other)


def bits(input: AnyValue, other: AnyValue) -> Tensor:
    """As `joined`, of whole numbers or of yes and no."""
    found = joined(input, other)
    need(not found.dtype.is_floating_point)
    return found


def turned(input: Tensor) -> Tensor:
    """Each bit the other way round."""
    need(not input.dtype.is_floating_point)
    return alike(input)


def raised(input: AnyValue, exponent: AnyValue) -> Tensor:
    """A power."""
    found = calculated(input, exponent)
    whole = not found.dtype.is_floating_point
    need(not (whole and isinstance(exponent, int) and exponent < 0))
    return found


def div(
    input: AnyValue, other: AnyValue, *, rounding_mode: str | None = None
) -> Tensor:
    """As `joined`, with fractions."""
    found = joined(input, other)
    if rounding_mode is None:
        return Tensor(found.shape, fraction(found.dtype))
    need(rounding_mode in ("floor", "trunc"))
    return divided(input, other)


def compared(input: Tensor, other: AnyValue) -> Tensor:
    """As `joined`, with yes or no for each number."""
    return Tensor(joined(input, other).shape, bool_)


def both(input: Tensor, other: Tensor) -> Tensor:
    """As `compared`, of tensors only."""
    return Tensor(broadcast(input.shape, other.shape), bool_)


def where(condition: Tensor, input: AnyValue, other: AnyValue) -> Tensor:
    """One of two values for each number."""
    need(condition.dtype is bool_)
    shapes = map(shape_of, (condition, input, other))
    return Tensor(broadcast(*shapes), dtype_of(input, other))


def masked_fill(input: Tensor, mask: Tensor, value: AnyValue) -> Tensor:
    """Another value in some places."""
    need(mask.dtype is bool_, shape_of(value) == (), input.dtype is not bool_)
    need(dtype_of(value).category <= input.dtype.category)
    return Tensor(broadcast(input.shape, mask.shape), input.dtype)


def clamp(
    input: Tensor, min: AnyValue | None = None, max: AnyValue | None = None
) -> Tensor:
    """Numbers between two others."""
    bounds = [one for one in (min, max) if one is not None]
    need(bounds, input.dtype is not bool_)
    need(len({isinstance(one, Tensor) for one in bounds}) == 1)
    found = reduce(calculated, bounds, input)
    return Tensor(found.shape, dtype_of(input, *bounds))


def clamp_min(input: Tensor, min: AnyValue) -> Tensor:
    """Numbers that are not smaller than another."""
    return clamp(input, min)


def clamp_max(input: Tensor, max: AnyValue) -> Tensor:
    """Numbers that are not larger than another."""
    return clamp(input, max)


# --- over dimensions --------------------------------------------------------


def known(dim: int, count: int) -> int:
    """A dimension counted from the front.

    Raises:
        OutOfRange: there is none.
    """
    need(type(dim) is int)
    if not -max(count, 1) <= dim < max(count, 1):
        raise OutOfRange(f"dimension {dim} is out of range of {count}")
    return dim % max(count, 1)


def places(dim: AnyValue, count: int) -> list[int]:
    """Several dimensions, or one, counted from the front."""
    found = [known(one, count) for one in ([dim] if type(dim) is int else dim)]
    if len({*found}) < len(found):
        refuse(f"a dimension appears twice in {dim}")
    return found


def without(input: Tensor, dim: AnyValue, keepdim: bool) -> list[int]:
    """The sizes that are left when dimensions are summed up."""
    need(dim is None or dim not in ((), []), dim is not None or not keepdim)
    gone = range(input.ndim) if dim is None else places(dim, input.ndim)
    return [
        1 if at in gone else size
        for at, size in enumerate(input.shape)
        if keepdim or at not in gone
    ]


def total(
    input: Tensor,
    dim: AnyValue = None,
    keepdim: bool = False,
    *,
    dtype: dtype | None = None,
) -> Tensor:
    """A sum."""
    kind = input.dtype if input.dtype.category > 1 else int64
    return Tensor(without(input, dim, keepdim), dtype or kind)


def product(
    input: Tensor,
    dim: AnyValue = None,
    keepdim: bool = False,
    *,
    dtype: dtype | None = None,
) -> Tensor:
    """A product."""
    need(type(dim) is int or (dim is None and not keepdim))
    return total(input, dim, keepdim, dtype=dtype)


def mean(
    input: Tensor,
    dim: AnyValue = None,
    keepdim: bool = False,
    *,
    dtype: dtype | None = None,
) -> Tensor:
    """A mean."""
    kind = dtype or input.dtype
    need(kind.category > 1)
    return Tensor(without(input, dim, keepdim), kind)


def spread(
    input: Tensor,
    dim: AnyValue = None,
    unbiased: bool = True,
    keepdim: bool = False,
) -> Tensor:
    """A variance, or the like."""
    return Tensor(without(input, dim, keepdim), floats(input))


def largest(
    input: Tensor, dim: AnyValue = None, keepdim: AnyValue = None
) -> AnyValue:
    """The largest number, or those along a dimension and where they are."""
    if isinstance(dim, Tensor):
        need(keepdim is None)
        return joined(input, dim)
    need(input.numel())
    if dim is None:
        need(keepdim is None)
        return Tensor((), input.dtype)
    need(type(dim) is int, keepdim is None or type(keepdim) is bool)
    shape = without(input, dim, keepdim or False)
    return Found(Tensor(shape, input.dtype), Tensor(shape, int64))


def middle(
    input: Tensor, dim: AnyValue = None, keepdim: AnyValue = None
) -> AnyValue:
    """The number in the middle."""
    need(not isinstance(dim, Tensor), input.dtype is not bool_)
    return largest(input, dim, keepdim)


def extreme(
    input: Tensor, dim: AnyValue = None, keepdim: bool = False
) -> Tensor:
    """The largest number."""
    need(input.numel())
    return Tensor(without(input, dim, keepdim), input.dtype)


def found_at(
    input: Tensor, dim: int | None = None, keepdim: bool = False
) -> Tensor:
    """Where the largest number is."""
    need(input.numel(), input.dtype is not bool_)
    need(type(dim) is int or (dim is None and not keepdim))
    return Tensor(without(input, dim, keepdim), int64)


def whether(
    input: Tensor, dim: AnyValue = None, keepdim: bool = False
) -> Tensor:
    """Whether all are, or any is."""
    need(input.dtype is not uint8)
    return Tensor(without(input, dim, keepdim), bool_)


def norm(
    input: Tensor,
    p: AnyValue = "fro",
    dim: AnyValue = None,
    keepdim: bool = False,
) -> Tensor:
    """A length."""
    need(p == "fro" or type(p) in (int, float))
    need(type(dim) is int or (p == "fro" and (dim is None or len(dim) < 3)))
    return Tensor(without(input, dim, keepdim), floats(input))


def length(
    input: Tensor,
    ord: None = None,
    dim: AnyValue = None,
    keepdim: bool = False,
) -> Tensor:
    """A length, as torch.linalg has it."""
    need(ord is None)
    return norm(input, "fro", dim, keepdim)


def running(input: Tensor, dim: int, *, dtype: dtype | None = None) -> Tensor:
    """A sum that is written down at each step."""
    known(dim, input.ndim)
    return Tensor(input.shape, total(input, dtype=dtype).dtype)


def shared(input: Tensor, dim: int, dtype: dtype | None = None) -> Tensor:
    """Numbers of which a dimension's sum is 1."""
    known(dim, input.ndim)
    need((dtype or input.dtype).is_floating_point)
    return Tensor(input.shape, dtype or input.dtype)


def sort(input: Tensor, dim: int = -1, descending: bool = False) -> Found:
    """Numbers in order, and where they were."""
    known(dim, input.ndim)
    return Found(alike(input), Tensor(input.shape, int64))


def argsort(
    input: Tensor,
    dim: int = -1,
    descending: bool = False,
) -> Tensor:
    """Where numbers in order were."""
    found: Tensor = sort(input, dim, descending).indices
    return found


def topk(
    input: Tensor,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
) -> Found:
    """The largest numbers, and where they are."""
    need(input.ndim, input.dtype is not bool_)
    at = known(dim, input.ndim)
    if not 0 <= k <= input.shape[at]:
        refuse(f"{k} numbers are asked for of {input.shape[at]}")
    shape = [*input.shape[:at], k, *input.shape[at + 1 :]]
    return Found(Tensor(shape, input.dtype), Tensor(shape, int64))


# --- products ---------------------------------------------------------------


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The product of two matrices, or of many."""
    a, b = list(input.shape), list(other.shape)
    if not (a and b):
        refuse("a matrix product of a number")
    need(same(input, other) is not bool_)
    left, right = [1, *a] if len(a) == 1 else a, [*b, 1] if len(b) == 1 else b
    if left[-1] != right[-2]:
        refuse(f"matrices of {a} and {b} cannot be multiplied")
    shape = broadcast(left[:-2], right[:-2])
    shape += [left[-2]] * (len(a) > 1) + [right[-1]] * (len(b) > 1)
    found = Tensor(shape, input.dtype)
    found.packed = len(a) >= len(b)
    return found


def _product(a: int, b: int) -> AnyValue:
    def multiplied(input: Tensor, mat2: Tensor) -> Tensor:
        if (input.ndim, mat2.ndim) != (a, b):
            refuse(f"needs {a} and {b} dimensions")
        if a == 3 and input.shape[0] != mat2.shape[0]:
            refuse(f"{input.shape[0]} matrices and {mat2.shape[0]}")
        return matmul(input, mat2)

    return multiplied


mm, bmm, mv, dot = (_product(*n) for n in ((2, 2), (3, 3), (2, 1), (1, 1)))


def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """Each number of one times each of another."""
    if (input.ndim, vec2.ndim) != (1, 1):
        refuse("needs two vectors")
    return Tensor([*input.shape, *vec2.shape], dtype_of(input, vec2))


def addmm(input: Tensor, mat1: Tensor, mat2: Tensor) -> Tensor:
    """A product and a sum."""
    return _added(input, mm(mat1, mat2))


def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor) -> Tensor:
    """Many products and sums."""
    return _added(input, bmm(batch1, batch2))


def _added(input: Tensor, found: Tensor) -> Tensor:
    same(input, found)
    if broadcast(input.shape, found.shape) != [*found.shape]:
        refuse(f"{input.shape} does not fit {found.shape}")
    return found


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """A product with a matrix, and a sum."""
    need(input.ndim, weight.ndim == 2)
    found = matmul(input, Tensor(reversed(weight.shape), weight.dtype))
    if bias is not None:
        need(bias.shape == weight.shape[:1], bias.dtype is weight.dtype)
    return found


def einsum(equation: str, *operands: Tensor) -> Tensor:
    """A sum of products, by letters."""
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    dots = {each: "..." in each for each in inputs.split(",")}
    letters = inputs.replace(",", "").replace("...", "")
    need((letters + output.replace("...", "")).isalpha() or not output)
    once = [one for one in {*letters} if letters.count(one) == 1]
    output = output if arrow else "..." + "".join(sorted(once))
    sizes: dict[str, int] = {}
    lead: list[int] = []
    for each, one in zip(inputs.split(","), operands, strict=True):
        own, at = [*one.shape], each.find("...")
        named = each.replace("...", "")
        more = len(own) - len(named)
        need(more == 0 or (dots[each] and more > 0))
        lead = broadcast(lead, own[at : at + more] if dots[each] else [])
        del own[at : at + more]
        for letter, size in zip(named, own, strict=True):
            if sizes.setdefault(letter, size) != size:
                need(1 not in (size, sizes[letter]))
                refuse(f"{letter} is {sizes[letter]} and {size}")
    before, whole, behind = output.partition("...")
    need(whole or not lead, len({*before, *behind}) == len(before + behind))
    need(same(*operands) is not bool_)
    first, last = ([sizes[one] for one in end] for end in (before, behind))
    return Tensor([*first, *lead * bool(whole), *last], same(*operands))


def int_index(index: Tensor) -> Tensor:
    """A tensor that says places."""
    need(index.dtype in (int32, int64))
    return index
