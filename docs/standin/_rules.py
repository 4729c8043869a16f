"""A stand-in for torch: the shapes and dtypes of results.

A rule reads each of its parameters, or they do not matter for shape and dtype.
It raises RuntimeError or OutOfRange for what torch refuses; any other error,
such as that of a parameter that it does not have, means that it does not know.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
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
    real_of,
    uint8,
)

Rule = Callable[..., AnyValue]
Found = namedtuple("Found", "values indices")
"""What the largest numbers are, and where."""


def need(*conditions: AnyValue) -> None:
    """Say that a result is not known unless all of some conditions hold."""
    if not all(conditions):
        raise NoRule


def refuse(text: str) -> NoReturn:
    """Say that torch refuses a call."""
    raise RuntimeError(text)


def only(found: AnyValue, *conditions: AnyValue) -> AnyValue:
    """A result that is known if conditions hold."""
    need(*conditions)
    return found


def unsized(*given: AnyValue) -> NoReturn:
    """For results whose size depends on numbers."""
    raise NoRule("its size depends on numbers, and here are only shapes")


def unasked(*given: AnyValue) -> NoReturn:
    """For what is True or False by numbers."""
    raise NoRule("yes or no depends on numbers, and here are only shapes")


def resized(x: Tensor, at: int, *sizes: int) -> Tensor:
    """A tensor with other sizes in place of one."""
    return Tensor([*x.shape[:at], *sizes, *x.shape[at + 1 :]], x.dtype)


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


def alike(x: Tensor) -> Tensor:
    """A result of the shape and type of its argument."""
    return Tensor(x.shape, x.dtype)


def counted(x: Tensor) -> Tensor:
    """As `alike`, of numbers."""
    need(x.dtype is not bool_)
    return alike(x)


def fractions(x: Tensor) -> Tensor:
    """As `alike`, with fractions."""
    return Tensor(x.shape, fraction(x.dtype))


def of_floats(x: Tensor) -> Tensor:
    """As `alike`, of fractions only."""
    return Tensor(x.shape, floats(x))


def asked_whether(x: Tensor) -> Tensor:
    """Yes or no for each number."""
    return Tensor(x.shape, bool_)


def joined(a: AnyValue, b: AnyValue) -> Tensor:
    """A result of the shape that all arguments fit."""
    need(isinstance(a, Tensor) or isinstance(b, Tensor))
    return Tensor(broadcast(shape_of(a), shape_of(b)), dtype_of(a, b))


def calculated(a: AnyValue, b: AnyValue) -> Tensor:
    """As `joined`, of numbers only."""
    need(dtype_of(a) is not bool_, dtype_of(b) is not bool_)
    return joined(a, b)


def divided(a: AnyValue, b: AnyValue) -> Tensor:
    """As `calculated`; a number to divide by is not 0."""
    need(isinstance(b, Tensor) or b)
    return calculated(a, b)


def bits(a: AnyValue, b: AnyValue) -> Tensor:
    """As `joined`, of whole numbers or of yes and no."""
    found = joined(a, b)
    need(found.dtype.category < 2)
    return found


def raised(x: AnyValue, exponent: AnyValue) -> Tensor:
    """A power."""
    found = calculated(x, exponent)
    whole = not found.dtype.is_floating_point
    need(not (whole and isinstance(exponent, int) and exponent < 0))
    return found


def div(a: AnyValue, b: AnyValue, mode: str | None = None) -> Tensor:
    """As `joined`, with fractions unless they are rounded."""
    if mode is None:
        return fractions(joined(a, b))
    need(mode in ("floor", "trunc"))
    return divided(a, b)


def compared(a: AnyValue, b: AnyValue) -> Tensor:
    """As `joined`, with yes or no for each number."""
    return asked_whether(joined(a, b))


def where(condition: Tensor, a: AnyValue, b: AnyValue) -> Tensor:
    """One of two values for each number."""
    need(condition.dtype is bool_)
    return Tensor(broadcast(*map(shape_of, (condition, a, b))), dtype_of(a, b))


def masked_fill(x: Tensor, mask: Tensor, value: AnyValue) -> Tensor:
    """Another value in some places."""
    need(mask.dtype is bool_, shape_of(value) == (), x.dtype is not bool_)
    need(dtype_of(value).category <= x.dtype.category)
    return Tensor(broadcast(x.shape, mask.shape), x.dtype)


def clamp(x: Tensor, low: AnyValue = None, high: AnyValue = None) -> Tensor:
    """Numbers between two others."""
    bounds = [one for one in (low, high) if one is not None]
    need(bounds, x.dtype is not bool_)
    found = reduce(calculated, bounds, x)
    return Tensor(found.shape, dtype_of(x, *bounds))


def of_all(*tensors: AnyValue) -> Tensor:
    """Fractions of the shape that all tensors fit; numbers do not matter."""
    given = [one for one in tensors if isinstance(one, Tensor)]
    shape = broadcast(*(one.shape for one in given))
    return Tensor(shape, floats(*given))


def floated(x: Tensor, *settings: AnyValue) -> Tensor:
    """Fractions; settings do not matter."""
    return of_floats(x)


def beside(x: Tensor, dim: int, rule: Rule) -> AnyValue:
    """A result of which a dimension is only looked at."""
    known(dim, x.ndim)
    return rule(x)


def whole_pair(a: AnyValue, b: AnyValue) -> Tensor:
    """As `bits`, without yes and no."""
    need(a.dtype.category == 1)
    return bits(a, b)


def real(input: Tensor) -> Tensor:
    """The real part."""
    return Tensor(input.shape, real_of(input.dtype))


def imag(input: Tensor) -> Tensor:
    """The imaginary part."""
    if not input.dtype.is_complex:
        refuse(f"imag of {input.dtype}, which is not complex")
    return real(input)


def absolute(input: Tensor) -> Tensor:
    """Numbers without a sign."""
    return real(counted(input))


def paired(a: Tensor, b: Tensor) -> Tensor:
    """Complex numbers of two parts."""
    found = of_all(a, b)
    need(found.dtype.itemsize > 2)
    return complex_of(found)


def complex_of(input: Tensor) -> Tensor:
    """Complex numbers of as many bits."""
    wide = input.dtype in (float64, complex128)
    need(wide or input.dtype.itemsize > 2)
    return Tensor(input.shape, complex128 if wide else complex64)


def as_complex(input: Tensor) -> Tensor:
    """Pairs of numbers as complex ones."""
    need(input.packed, input.ndim, input.shape[-1] == 2)
    need(input.dtype.itemsize > 2 and input.dtype.is_floating_point)
    return complex_of(Tensor(input.shape[:-1], input.dtype))


def as_real(input: Tensor) -> Tensor:
    """Complex numbers as pairs."""
    need(input.dtype.is_complex)
    return Tensor([*input.shape, 2], real_of(input.dtype))


def scaled(rule: Rule) -> Rule:
    """A rule with a factor behind, for sums."""

    def by(a: AnyValue, b: AnyValue, factor: AnyValue = 1) -> AnyValue:
        found = rule(a, b)
        kind = dtype_of(factor)
        need(
            kind is not bool_,
            factor == 1 or kind.category <= found.dtype.category,
        )
        return found

    return by


def nearly(a: Tensor, b: Tensor, *settings: AnyValue) -> Tensor:
    """Whether numbers are nearly the same."""
    need(same(a, b), all(one >= 0 for one in settings))
    return compared(a, b)


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


def without(x: Tensor, dim: AnyValue, keep: bool) -> list[int]:
    """The sizes that are left when dimensions are summed up."""
    need(dim is None or dim not in ((), []), dim is not None or not keep)
    gone = range(x.ndim) if dim is None else places(dim, x.ndim)
    return [
        1 if at in gone else size
        for at, size in enumerate(x.shape)
        if keep or at not in gone
    ]


def total(
    x: Tensor, dim: AnyValue = None, keep: bool = False, kind: AnyValue = None
) -> Tensor:
    """A sum."""
    own = x.dtype if x.dtype.category > 1 else int64
    return Tensor(without(x, dim, keep), kind or own)


def mean(
    x: Tensor, dim: AnyValue = None, keep: bool = False, kind: AnyValue = None
) -> Tensor:
    """A mean."""
    need((kind or x.dtype).category > 1)
    return total(x, dim, keep, kind)


def spread(
    x: Tensor, dim: AnyValue = None, by: AnyValue = None, keep: bool = False
) -> Tensor:
    """A variance, or the like; a correction does not matter."""
    return Tensor(without(x, dim, keep), floats(x))


def along(x: Tensor, dim: AnyValue = None, keep: bool = False) -> Tensor:
    """One number of each row."""
    need(x.numel())
    return Tensor(without(x, dim, keep), x.dtype)


def found_at(x: Tensor, dim: int | None, keep: bool) -> Tensor:
    """Where the largest number is."""
    need(x.dtype is not bool_)
    return Tensor(along(x, dim, keep).shape, int64)


def whether(x: Tensor, dim: AnyValue = None, keep: bool = False) -> Tensor:
    """Whether all are, or any is."""
    need(x.dtype is not uint8)
    return Tensor(without(x, dim, keep), bool_)


def norm(
    x: Tensor, p: AnyValue = "fro", dim: AnyValue = None, keepdim: bool = False
) -> Tensor:
    """A length."""
    need(p == "fro" or type(p) in (int, float), type(keepdim) is bool)
    need(type(dim) is int or (p == "fro" and (dim is None or len(dim) < 3)))
    return Tensor(without(x, dim, keepdim), floats(x))


def running(x: Tensor, dim: int, kind: AnyValue) -> Tensor:
    """A sum that is written down at each step."""
    known(dim, x.ndim)
    return Tensor(x.shape, total(x, kind=kind).dtype)


def shared(x: Tensor, dim: AnyValue, kind: AnyValue) -> Tensor:
    """Numbers of which a dimension's sum is 1."""
    known(dim, x.ndim)
    need((kind or x.dtype).is_floating_point)
    return Tensor(x.shape, kind or x.dtype)


def topk(x: Tensor, k: int, dim: int, *more: bool) -> Tensor:
    """The largest numbers."""
    need(x.ndim, x.dtype is not bool_)
    at = known(dim, x.ndim)
    if not 0 <= k <= x.shape[at]:
        refuse(f"{k} numbers are asked for of {x.shape[at]}")
    return Tensor([*x.shape[:at], k, *x.shape[at + 1 :]], x.dtype)


def kept(x: Tensor, dim: AnyValue, keep: bool) -> Tensor:
    """Fractions of which dimensions are summed up."""
    return Tensor(without(x, dim, keep), floats(x))


def two(rule: Rule) -> Rule:
    """Values, and where they are; or two kinds of values."""

    def both(*given: AnyValue) -> AnyValue:
        found = rule(*given)
        return Found(found, Tensor(found.shape, int64))

    return both


def of_row(x: Tensor, dim: int, keepdim: bool) -> Tensor:
    """One number of each row, of numbers."""
    return along(counted(x), dim, keepdim)


def nth(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Tensor:
    """As `along`, of so many numbers."""
    need(x.ndim and 1 <= k <= x.shape[known(dim, x.ndim)])
    return of_row(x, dim, keepdim)


def twice(rule: Rule) -> Rule:
    """Two results of a kind."""
    return lambda *given: (rule(*given), rule(*given))


def differences(
    x: Tensor, n: int, dim: int, before: AnyValue, behind: AnyValue
) -> Tensor:
    """Numbers minus those before them."""
    at = known(dim, x.ndim)
    need(n == 1, x.ndim, x.shape[at], before is None, behind is None)
    return resized(x, at, x.shape[at] - 1)


def ranked(
    edges: Tensor, x: AnyValue, small: bool, right: bool, *more: AnyValue
) -> Tensor:
    """Between which edges numbers are."""
    need(*(one is None for one in more), edges.ndim)
    if isinstance(x, Tensor):
        need(edges.dtype is x.dtype)
        need(edges.ndim == 1 or edges.shape[:-1] == x.shape[:-1])
    return Tensor(shape_of(x), int32 if small else int64)


def halved(n: int, back: bool = False) -> Rule:
    """The Fourier transform of real numbers, which has half of the sizes."""

    def rule(x: Tensor, size: AnyValue, dim: int, norm: AnyValue) -> Tensor:
        at = known(dim, x.ndim)
        need(x.ndim, x.dtype.is_complex == back or x.dtype.category < 3)
        need(norm in (None, "forward", "backward", "ortho"))
        old = 2 * (x.shape[at] - 1) if back else x.shape[at]
        whole = old if size is None else size
        need(whole > 0, x.numel())
        found = resized(x, at, whole if back else whole // n + n - 1)
        made = complex_of(found if x.dtype.category > 1 else fractions(found))
        return real(made) if back else made

    return rule


def fourier(
    x: Tensor, size: AnyValue, dim: AnyValue = (-2, -1), norm: AnyValue = None
) -> Tensor:
    """The Fourier transform of some dimensions."""
    need(size is None, x.ndim, x.numel(), norm in (None, "ortho"))
    places(range(x.ndim) if dim is None else dim, x.ndim)
    return complex_of(fractions(x))


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


def outer(a: Tensor, b: Tensor) -> Tensor:
    """Each number of one times each of another."""
    if (a.ndim, b.ndim) != (1, 1):
        refuse("needs two vectors")
    return Tensor([*a.shape, *b.shape], dtype_of(a, b))


def added(input: Tensor, found: Tensor) -> Tensor:
    """A product, and a sum."""
    same(input, found)
    if broadcast(input.shape, found.shape) != [*found.shape]:
        refuse(f"{input.shape} does not fit {found.shape}")
    return found


def linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
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


def inner_product(a: Tensor, b: Tensor) -> Tensor:
    """The sums of products of the last dimensions."""
    need(a.ndim, b.ndim, a.shape[-1] == b.shape[-1], same(a, b) is not bool_)
    return Tensor([*a.shape[:-1], *b.shape[:-1]], a.dtype)


def folded(a: Tensor, b: Tensor, dims: AnyValue = 2, _: None = None) -> Tensor:
    """The sums of products over several dimensions of each."""
    if type(dims) is int:
        need(dims >= 0)
        dims = [range(a.ndim - dims, a.ndim), range(dims)]
    left, right = (
        places(row, one.ndim) for row, one in zip(dims, (a, b), strict=True)
    )
    need(len(left) == len(right), same(a, b) is not bool_)
    need(
        all(a.shape[i] == b.shape[j] for i, j in zip(left, right, strict=True))
    )
    rest = [n for at, n in enumerate(a.shape) if at not in left]
    more = [n for at, n in enumerate(b.shape) if at not in right]
    return Tensor([*rest, *more], a.dtype)


def distances(a: Tensor, b: Tensor, p: float, mode: AnyValue) -> Tensor:
    """How far rows are from each other."""
    need(a.ndim > 1, b.ndim > 1, p >= 0, mode in (None, 0, 1, 2))
    need(a.shape[-1] == b.shape[-1])
    lead = broadcast(a.shape[:-2], b.shape[:-2])
    return Tensor([*lead, a.shape[-2], b.shape[-2]], floats(a, b))


def square(x: Tensor) -> Tensor:
    """A matrix of as many rows as columns."""
    need(x.ndim > 1, x.shape[-1] == x.shape[-2])
    return of_floats(x)


def vector_norm(
    x: Tensor, order: AnyValue, dim: AnyValue, keepdim: bool, kind: AnyValue
) -> Tensor:
    """The length of vectors."""
    need(kind is None, x.numel())
    return kept(x, dim, keepdim)


def crossed(a: Tensor, b: Tensor, dim: AnyValue = None) -> Tensor:
    """The cross product."""
    need(dim is not None, a.ndim == b.ndim)
    found = calculated(a, b)
    need(3 == a.shape[known(dim, a.ndim)] == b.shape[dim], same(a, b))
    return found


def bilinear(
    a: Tensor, b: Tensor, weight: Tensor, bias: Tensor | None
) -> Tensor:
    """Products with a matrix in between, for each of many."""
    need(a.ndim, a.shape[:-1] == b.shape[:-1], weight.ndim == 3)
    need(weight.shape[1:] == (a.shape[-1], b.shape[-1]), a.numel())
    need(bias is None or bias.shape == weight.shape[:1])
    given = [one for one in (a, b, weight, bias) if one is not None]
    return Tensor([*a.shape[:-1], weight.shape[0]], floats(*given))


def of_matrix(x: Tensor) -> Tensor:
    """A number for each matrix."""
    return Tensor(square(x).shape[:-2], x.dtype)
