"""A stand-in for torch: the rule of each form of torch's functions.

A rule takes what the form's parameters get, in their order, but for those that
matter neither for shape nor dtype (`_forms.PLAIN`).  A key without a dot is
the rule of all forms of a function, unless it has keys with dots, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NoReturn

from . import _nets as nets
from . import _rules as rules
from . import _shapes as shapes
from ._rules import (
    Found,
    alike,
    counted,
    floats,
    known,
    need,
    of_floats,
    same,
    without,
)
from ._shapes import cast
from ._tensor import (
    AnyValue,
    NoRule,
    Tensor,
    bool_,
    broadcast,
    complex64,
    complex128,
    float32,
    float64,
    int32,
    int64,
    real_of,
)

Rule = Callable[..., AnyValue]


def named(names: str, rule: Rule) -> dict[str, Rule]:
    """One rule for several functions."""
    return dict.fromkeys(names.split(), rule)


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


# --- element by element -----------------------------------------------------


def of_all(*tensors: AnyValue) -> Tensor:
    """Fractions of the shape that all tensors fit; numbers do not matter."""
    given = [one for one in tensors if isinstance(one, Tensor)]
    shape = broadcast(*(one.shape for one in given))
    return Tensor(shape, floats(*given))


def floated(x: Tensor, *settings: AnyValue) -> Tensor:
    """Fractions; settings do not matter."""
    return of_floats(x)


def at(x: Tensor, dim: int, rule: Rule) -> AnyValue:
    """A result of which a dimension is only looked at."""
    known(dim, x.ndim)
    return rule(x)


def whole_pair(a: AnyValue, b: AnyValue) -> Tensor:
    """As `rules.bits`, without yes and no."""
    need(a.dtype.category == 1)
    return rules.bits(a, b)


def real(input: Tensor) -> Tensor:
    """The real part."""
    return Tensor(input.shape, real_of(input.dtype))


def imag(input: Tensor) -> Tensor:
    """The imaginary part."""
    if not input.dtype.is_complex:
        rules.refuse(f"imag of {input.dtype}, which is not complex")
    return real(input)


def absolute(input: Tensor) -> Tensor:
    """Numbers without a sign."""
    return real(rules.counted(input))


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
        kind = rules.dtype_of(factor)
        need(
            kind is not bool_,
            factor == 1 or kind.category <= found.dtype.category,
        )
        return found

    return by


def close(a: Tensor, b: Tensor, *settings: AnyValue) -> Tensor:
    """Whether numbers are nearly the same."""
    need(same(a, b), all(one >= 0 for one in settings))
    return rules.compared(a, b)


# --- over dimensions --------------------------------------------------------


def kept(rule: Rule) -> Rule:
    """A rule over dimensions, of fractions only."""
    return lambda x, dim=None, keepdim=False, *more: Tensor(
        without(x, dim, keepdim), floats(x) if rule is floats else rule(x)
    )


def two(rule: Rule) -> Rule:
    """Values, and where they are; or two kinds of values."""

    def both(*given: AnyValue) -> AnyValue:
        found = rule(*given)
        return Found(found, Tensor(found.shape, int64))

    return both


def row(x: Tensor, dim: int, keepdim: bool) -> Tensor:
    """One number of each row, of numbers."""
    return rules.along(rules.counted(x), dim, keepdim)


def nth(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Tensor:
    """As `along`, of so many numbers."""
    need(x.ndim and 1 <= k <= x.shape[known(dim, x.ndim)])
    return row(x, dim, keepdim)


def twice(rule: Rule) -> Rule:
    """Two results of a kind."""
    return lambda *given: (rule(*given), rule(*given))


def differences(
    x: Tensor, n: int, dim: int, before: AnyValue, behind: AnyValue
) -> Tensor:
    """Numbers minus those before them."""
    at = known(dim, x.ndim)
    need(n == 1, x.ndim, x.shape[at], before is None, behind is None)
    return shapes.resized(x, at, x.shape[at] - 1)


def ranked(
    edges: Tensor, x: AnyValue, small: bool, right: bool, *more: AnyValue
) -> Tensor:
    """Between which edges numbers are."""
    need(*(one is None for one in more), edges.ndim)
    if isinstance(x, Tensor):
        need(edges.dtype is x.dtype)
        need(edges.ndim == 1 or edges.shape[:-1] == x.shape[:-1])
    return Tensor(rules.shape_of(x), int32 if small else int64)


def halved(n: int, back: bool = False) -> Rule:
    """The Fourier transform of real numbers, which has half of the sizes."""

    def rule(x: Tensor, size: AnyValue, dim: int, norm: AnyValue) -> Tensor:
        at = known(dim, x.ndim)
        need(x.ndim, x.dtype.is_complex == back or x.dtype.category < 3)
        need(norm in (None, "forward", "backward", "ortho"))
        old = 2 * (x.shape[at] - 1) if back else x.shape[at]
        whole = old if size is None else size
        need(whole > 0, x.numel())
        found = shapes.resized(x, at, whole if back else whole // n + n - 1)
        made = complex_of(
            found if x.dtype.category > 1 else rules.fractions(found)
        )
        return real(made) if back else made

    return rule


def fourier(
    x: Tensor, size: AnyValue, dim: AnyValue = (-2, -1), norm: AnyValue = None
) -> Tensor:
    """The Fourier transform of some dimensions."""
    need(size is None, x.ndim, x.numel(), norm in (None, "ortho"))
    rules.places(range(x.ndim) if dim is None else dim, x.ndim)
    return complex_of(rules.fractions(x))


# --- by places --------------------------------------------------------------


def scattered(
    x: Tensor, dim: int, index: Tensor, src: AnyValue, *settings: AnyValue
) -> Tensor:
    """Numbers put at places along a dimension."""
    at = known(dim, x.ndim)
    need(index.dtype is int64, x.ndim == index.ndim > 0, index.numel())
    need(x.numel())
    if isinstance(src, Tensor):
        same(x, src)
        need(src.ndim == x.ndim)
        pairs = zip(index.shape, src.shape, strict=True)
        need(all(a <= b for a, b in pairs))
    else:
        need(rules.dtype_of(src).category <= x.dtype.category)
    pairs = zip(index.shape, x.shape, strict=True)
    need(all(a <= b for one, (a, b) in enumerate(pairs) if one != at))
    reduce = settings[0] if settings else "sum"
    need(reduce in ("sum", "prod", "mean", "amax", "amin"))
    return alike(x)


def added_at(
    x: Tensor, dim: int, index: Tensor, src: AnyValue, factor: AnyValue = 1
) -> Tensor:
    """Rows put at places of a dimension."""
    at = known(dim, x.ndim)
    need(rules.int_index(index).ndim == 1, x.ndim)
    if isinstance(src, Tensor):
        same(x, src)
        need(src.shape == shapes.resized(x, at, *index.shape).shape)
        need(index.dtype is int64)
    need(rules.dtype_of(factor).category <= x.dtype.category)
    return alike(x)


def filled_at(x: Tensor, dim: int, index: Tensor, value: AnyValue) -> Tensor:
    """One number put at places of a dimension."""
    need(rules.shape_of(value) == (), index.dtype is int64)
    need(rules.dtype_of(value).category <= x.dtype.category)
    need(x.dtype is not bool_)
    return added_at(x, dim, index, 1)


def taken(x: Tensor, index: Tensor) -> Tensor:
    """Numbers by their places in all."""
    need(x.numel(), index.dtype is int64)
    return Tensor(index.shape, x.dtype)


def windows(x: Tensor, dim: int, size: int, step: int) -> Tensor:
    """Parts of a dimension, which may overlap."""
    at = known(dim, x.ndim)
    need(x.ndim, 0 < size <= x.shape[at], step > 0)
    found = shapes.resized(x, at, (x.shape[at] - size) // step + 1)
    return Tensor([*found.shape, size], x.dtype)


# --- in another shape -------------------------------------------------------


def tiled(x: Tensor, times: Sequence[int]) -> Tensor:
    """Several times, the last dimensions first."""
    return shapes.repeat(x, [1] * (x.ndim - len(times)) + [*times])


def moved(x: Tensor, source: AnyValue, target: AnyValue) -> Tensor:
    """Several dimensions in other places."""
    a, b = rules.places(source, x.ndim), rules.places(target, x.ndim)
    need(len(a) == len(b))
    rest = [at for at in range(x.ndim) if at not in a]
    for to, at in sorted(zip(b, a, strict=True)):
        rest.insert(to, at)
    return shapes.permute(x, rest)


def parts(x: Tensor, count: int, dim: int) -> AnyValue:
    """As many parts as are asked for, the first of which are larger."""
    size = x.shape[known(dim, x.ndim)]
    need(count > 0)
    sizes = [size // count + (at < size % count) for at in range(count)]
    return shapes.split(x, sizes, dim)


def joined(least: int, at: int) -> Rule:
    """Tensors with at least so many dimensions, one behind the other."""

    def rule(tensors: Sequence[Tensor]) -> Tensor:
        dims = {one.ndim for one in tensors}
        need(len(dims) == 1)
        if least == 1:
            return shapes.cat(tensors, at if dims != {1} else 0)
        need(min(dims))
        shape = [lifted(one.shape, at) for one in tensors]
        pairs = zip(shape, tensors, strict=True)
        return shapes.cat([Tensor(a, b.dtype) for a, b in pairs], at)

    return rule


def lifted(shape: Sequence[int], at: int) -> Sequence[int]:
    """A vector as a matrix, a row if they are put below each other."""
    return shape if len(shape) > 1 else [1, *shape] if at == 0 else [*shape, 1]


def corner(turn: int) -> Rule:
    """The places of one half of a matrix."""

    def rule(row: int, col: int, offset: int, kind: AnyValue) -> Tensor:
        need(row >= 0, col >= 0, kind in (None, int64))
        lower = [min(max(at + offset + turn, 0), col) for at in range(row)]
        count = sum(lower) if turn else row * col - sum(lower)
        return Tensor([2, count], int64)

    return rule


def rolled(x: Tensor, shifts: Sequence[int], dims: Sequence[int]) -> Tensor:
    """Moved around."""
    need(shifts, len(shifts) == len(dims) or (len(shifts) == 1 and not dims))
    for dim in dims:
        need(x.ndim)
        known(dim, x.ndim)
    return alike(x)


def cornered(x: Tensor, offset: int) -> Tensor:
    """A vector as the diagonal of a matrix, or the diagonal of one."""
    need(x.ndim in (1, 2), offset == 0)
    return (
        shapes.diagonal(x, 0, 0, 1)
        if x.ndim == 2
        else Tensor(2 * [*x.shape], x.dtype)
    )


def shuffled(x: Tensor, groups: int) -> Tensor:
    """Channels in another order."""
    need(x.ndim > 2, groups > 0, x.numel(), x.shape[1] % groups == 0)
    return alike(x)


# --- products ---------------------------------------------------------------


def inner(a: Tensor, b: Tensor) -> Tensor:
    """The sums of products of the last dimensions."""
    need(a.ndim, b.ndim, a.shape[-1] == b.shape[-1], same(a, b) is not bool_)
    return Tensor([*a.shape[:-1], *b.shape[:-1]], a.dtype)


def folded(a: Tensor, b: Tensor, dims: AnyValue = 2, _: None = None) -> Tensor:
    """The sums of products over several dimensions of each."""
    if type(dims) is int:
        need(dims >= 0)
        dims = [range(a.ndim - dims, a.ndim), range(dims)]
    left, right = (
        rules.places(row, one.ndim)
        for row, one in zip(dims, (a, b), strict=True)
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


def length(
    x: Tensor, order: AnyValue, dim: AnyValue, keepdim: bool, kind: AnyValue
) -> Tensor:
    """The length of vectors."""
    need(kind is None, x.numel())
    return kept(floats)(x, dim, keepdim)  # type: ignore[no-any-return]


def crossed(a: Tensor, b: Tensor, dim: AnyValue = None) -> Tensor:
    """The cross product."""
    need(dim is not None, a.ndim == b.ndim)
    found = rules.calculated(a, b)
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


def written(x: Tensor, src: Tensor, *settings: AnyValue) -> Tensor:
    """Numbers of another tensor."""
    need(broadcast(x.shape, src.shape) == [*x.shape])
    need(src.dtype.category <= x.dtype.category)
    return alike(x)


def filled(x: Tensor, value: AnyValue) -> Tensor:
    """One number everywhere."""
    need(rules.shape_of(value) == (), x.dtype is not bool_)
    need(rules.dtype_of(value).category <= x.dtype.category)
    return alike(x)


def normal(mean: AnyValue, std: AnyValue, *more: AnyValue) -> Tensor:
    """Drawn around a mean."""
    if more:
        return shapes.drawn(*more)
    need(isinstance(std, Tensor) or std >= 0)
    return of_all(mean, std)


def less(x: Tensor) -> Tensor:
    """A number for each matrix."""
    return Tensor(square(x).shape[:-2], x.dtype)


def unshuffled(x: Tensor, by: int) -> Tensor:
    """An image as more channels."""
    need(x.ndim > 2, x.numel(), by > 0)
    *lead, channels, high, wide = x.shape
    need(high % by == wide % by == 0)
    return Tensor([*lead, channels * by**2, high // by, wide // by], x.dtype)


# --- networks ---------------------------------------------------------------


def columns(
    x: Tensor, k: AnyValue, d: AnyValue, p: AnyValue, s: AnyValue
) -> Tensor:
    """The windows of an image, each as a column."""
    need(x.ndim in (3, 4), floats(x))
    space = nets.pooled(x, 2, k, s, p, d, half=False)
    inner = x.shape[-3] * math.prod(nets.each(k, 2))
    return Tensor([*x.shape[:-3], inner, math.prod(space)], x.dtype)


def summed(
    x: Tensor,
    size: AnyValue,
    k: AnyValue,
    d: AnyValue,
    p: AnyValue,
    s: AnyValue,
) -> Tensor:
    """Columns put together as an image."""
    need(x.ndim in (2, 3), floats(x))
    inner = math.prod(nets.each(k, 2))
    shape = [*x.shape[:-2], x.shape[-2] // inner, *nets.each(size, 2)]
    need(columns(Tensor(shape, x.dtype), k, d, p, s).shape == x.shape)
    return Tensor(shape, x.dtype)


def sampled(x: Tensor, grid: Tensor, mode: str, edge: str, _: bool) -> Tensor:
    """Numbers of an image at places between them."""
    need(mode in ("bilinear", "nearest", "bicubic"), x.ndim == 4 == grid.ndim)
    need(edge in ("zeros", "border", "reflection"), x.numel(), grid.numel())
    need(grid.shape[-1] == 2, grid.shape[0] == x.shape[0], floats(x, grid))
    return Tensor([*x.shape[:2], *grid.shape[1:3]], x.dtype)


def bags(
    x: Tensor, weight: Tensor, offsets: Tensor | None, *more: AnyValue
) -> Tensor:
    """Sums or means of rows of a matrix."""
    limit, _, scale, mode, _, each, last, pad = more
    need(limit is None, not scale, each is None, not last, pad is None)
    need(mode in ("sum", "mean", "max"), x.numel(), weight.numel())
    need(rules.int_index(x).ndim == (2 if offsets is None else 1))
    if offsets is not None:
        need(offsets.ndim == 1, offsets.dtype is x.dtype)
    count = (x if offsets is None else offsets).shape[0]
    need(weight.ndim == 2, count)
    return Tensor([count, weight.shape[1]], floats(weight))


def loss(*more: str) -> Rule:
    """A loss of pairs of numbers, by the names of its other parameters."""

    def rule(x: Tensor, y: Tensor, *given: AnyValue) -> Tensor:
        named = dict(zip(more, given, strict=True))
        need(*(named.get(one) is None for one in ("weight", "pos_weight")))
        need(named.get("beta", 1) > 0)
        reduction = named["reduction"]
        if reduction == "batchmean" and "log_target" in named:
            need(x.ndim and x.shape[0])
            reduction = "mean"
        return nets.compared_loss(x, y, reduction=reduction)

    return rule


def classes(
    x: Tensor, y: Tensor, w: Tensor | None, ignore: int, to: str, by: float = 0
) -> Tensor:
    """How far numbers for classes are from the right class."""
    need(0 <= by <= 1)
    if w is not None:
        at = min(1, x.ndim - 1)
        need(w.shape == x.shape[at : at + 1], w.dtype is x.dtype)
    return nets.nll_loss(x, y, reduction=to)


def dropped(least: int = 0, most: int = 9) -> Rule:
    """With some numbers missing."""
    return lambda x, p, *more: only(
        of_floats(x), 0 <= p <= 1, least <= x.ndim <= most
    )


def of_instances(x: Tensor, *given: AnyValue) -> Tensor:
    """Of mean 0 and variance 1 in each channel."""
    mean, var, weight, bias, use, *_ = given
    need(mean is None, var is None, use, x.ndim > 2, x.numel())
    need(any(size > 1 for size in x.shape[2:]))
    nets.fit_weights(x, x.shape[1:2], weight, bias)
    return of_floats(x)


def _windows(n: int) -> dict[str, Rule]:
    """Those of so many dimensions."""
    adapted = nets.adaptive(n)

    def largest(x: Tensor, size: AnyValue, places: bool) -> AnyValue:
        return (two(adapted) if places else adapted)(x, size)

    def most(x: Tensor, *given: AnyValue) -> AnyValue:
        *window, places = given
        rule = nets.most(n)
        return (two(rule) if places else rule)(x, *window)

    def of_power(x: Tensor, p: float, *given: AnyValue) -> AnyValue:
        need(type(p) in (int, float), p)
        k, s, up = given
        return nets.average(n)(x, k, s, 0, up)

    return {
        f"F.adaptive_max_pool{n}d": largest,
        f"F.lp_pool{n}d": of_power,
        f"F.max_pool{n}d": most,
        f"F.adaptive_avg_pool{n}d": adapted,
        f"adaptive_avg_pool{n}d": adapted,
        f"avg_pool{n}d": lambda x, k, s, p, up, whole, by=None: only(
            nets.average(n)(x, k, s, p, up), by is None
        ),
    }


_FRACTIONS: Final = (
    "asinh acosh atanh arcsin arccos arctan sinc lgamma digamma erfinv deg2rad "
    "rad2deg special_expit special_erf special_erfc special_exp2 special_sinc"
)
_OF_ALL: Final = (
    "atan2 arctan2 hypot logaddexp logaddexp2 xlogy copysign heaviside "
    "nextafter addcmul addcdiv lerp"
)
_UNSIZED: Final = (
    "nonzero argwhere bincount masked_select unique_consecutive "
    "repeat_interleave.Tensor repeat_interleave.self_Tensor"
)
TABLE: Final[dict[str, Rule]] = {
    **named("neg negative square sign relu positive floor ceil round", counted),
    **named(
        "sigmoid tanh exp log sqrt rsqrt sin cos tan erf erfc log1p expm1 log2 "
        "log10 exp2 asin acos atan sinh cosh reciprocal",
        rules.fractions,
    ),
    **named("trunc selu logit gelu", floated),
    **named("isnan isinf isfinite logical_not signbit", rules.asked_whether),
    **named("mul multiply", rules.joined),
    **named("fmod remainder floor_divide", rules.divided),
    **named("maximum minimum fmin fmax", rules.calculated),
    **named("bitwise_and bitwise_or bitwise_xor", rules.bits),
    "bitwise_not": lambda x: only(alike(x), x.dtype.category < 2),
    "pow": rules.raised,
    **named("div divide true_divide", rules.div),
    **named("eq ne lt le gt ge", rules.compared),
    **named("logical_and logical_or logical_xor", rules.compared),
    **named("where.self where.ScalarOther where.ScalarSelf", rules.where),
    "where": unsized,
    "masked_fill": rules.masked_fill,
    **named("clamp clip", rules.clamp),
    "clamp_min": rules.clamp,
    "clamp_max": lambda x, high: rules.clamp(x, None, high),
    **named("detach clone contiguous cpu cuda", alike),
    "sum": lambda x, kind: rules.total(x, None, False, kind),
    "sum.dim_IntList": rules.total,
    "prod": lambda x, kind: rules.total(x, None, False, kind),
    "prod.dim_int": rules.total,
    "mean": lambda x, kind: rules.mean(x, None, False, kind),
    "mean.dim": rules.mean,
    **named(
        "amax amin", lambda x, dim, keep: rules.along(x, dim or None, keep)
    ),
    **named("max min", rules.along),
    "median": lambda x: rules.along(counted(x)),
    **named("max.dim min.dim", two(rules.along)),
    "median.dim": two(row),
    **named("max.other min.other", rules.joined),
    **named("argmax argmin", rules.found_at),
    **named("all any all.dim any.dim all.dims any.dims", rules.whether),
    **named("cumsum cumprod", rules.running),
    "sort": two(lambda x, dim, down: at(x, dim, alike)),
    "sort.stable": two(lambda x, stable, dim, down: at(x, dim, alike)),
    "argsort": lambda x, dim, down: cast(at(x, dim, alike), int64),
    "argsort.stable": lambda x, _, dim, down: cast(at(x, dim, alike), int64),
    "topk": two(rules.topk),
    **named("reshape", shapes.reshape),
    **named("view", shapes.view),
    "view_as": lambda x, other: shapes.view(x, other.shape),
    "flatten.using_ints": shapes.flatten,
    "unflatten.int": shapes.unflatten,
    "permute": shapes.permute,
    **named("transpose.int swapaxes swapdims", shapes.transpose),
    "t": shapes.t,
    **named("squeeze squeeze.dim squeeze.dims", shapes.squeeze),
    "unsqueeze": shapes.unsqueeze,
    **named("expand broadcast_to", shapes.expand),
    "expand_as": lambda x, other: shapes.expand(x, other.shape),
    "repeat": shapes.repeat,
    "flip": shapes.flip,
    **named("tril triu", shapes.triangle),
    "diagonal": shapes.diagonal,
    "gather": shapes.gather,
    "index_select": shapes.index_select,
    "select.int": shapes.select,
    "narrow": shapes.narrow,
    **named("cat concat concatenate", shapes.cat),
    "stack": shapes.stack,
    **named("split.Tensor split.sizes functional.split", shapes.split),
    "chunk": shapes.chunk,
    "unbind.int": shapes.unbind,
    "multinomial": shapes.multinomial,
    **named("mm", rules.mm),
    **{"bmm": rules.bmm, "mv": rules.mv, "dot": rules.dot},
    "matmul": rules.matmul,
    "outer": rules.outer,
    "linear": rules.linear,
    "functional.norm": lambda *given: only(
        rules.norm(*given[:-1]), given[-1] is None
    ),
    "linalg_norm": lambda x, order, dim, keep, kind: only(
        rules.norm(x, "fro", dim, keep), order is None, kind is None
    ),
    # New tensors, and other types.
    **named(
        "zeros ones empty.memory_format",
        lambda size, kind: Tensor(size, kind or float32),
    ),
    **named("rand randn rand.generator randn.generator", shapes.drawn),
    "full": lambda size, value, kind: Tensor(
        size, kind or rules.dtype_of(value)
    ),
    "randint": lambda high, *more: shapes.randint(0, high, *more),
    "randint.low": shapes.randint,
    "randperm": lambda n, kind: only(Tensor([n], int64), kind is None),
    "eye": lambda n, kind: Tensor([n, n], kind or float32),
    "eye.m": lambda n, m, kind: Tensor([n, m], kind or float32),
    "linspace": lambda a, b, n, kind: shapes.drawn([n], kind),
    "arange": lambda end, kind: shapes.arange(0, end, 1, kind),
    "arange.start": lambda a, b, kind: shapes.arange(a, b, 1, kind),
    "arange.start_step": shapes.arange,
    **named(
        "zeros_like ones_like empty_like",
        lambda x, kind: Tensor(x.shape, kind or x.dtype),
    ),
    **named("rand_like randn_like", shapes.drawn_like),
    "full_like": shapes.full_like,
    **named(
        "new_zeros new_ones new_empty",
        lambda x, size, kind: Tensor(size, kind or x.dtype),
    ),
    "new_full": lambda x, size, value, kind: Tensor(size, kind or x.dtype),
    "is_contiguous": lambda x: only(True, x.packed),
    "size": lambda x: x.shape,
    "size.int": shapes.size,
    **named("type_as to.other", lambda x, y, *more: cast(x, y.dtype)),
    "to.dtype": lambda x, kind, *more: cast(x, kind),
    "to.device": lambda x, kind, *more: cast(x, kind),
    "to.dtype_layout": lambda x, kind, *more: cast(x, kind or x.dtype),
    "to.prim_Device": lambda x, kind, *more: only(alike(x), kind is None),
    "requires_grad_": of_floats,
    **{f"conv{n}d": nets.convolution(n) for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": nets.spreading(n) for n in (1, 2, 3)},
    "rms_norm": nets.rms_norm,
    "cosine_similarity": nets.cosine_similarity,
    "pixel_shuffle": nets.pixel_shuffle,
    **named(_FRACTIONS, rules.fractions),
    **named(_OF_ALL, of_all),
    **named("frac sgn nan_to_num hardshrink", floated),
    **named("bernoulli.p", lambda x, p: only(alike(x), 0 <= p <= 1)),
    "bernoulli": of_floats,
    "poisson": of_floats,
    **named("abs absolute", absolute),
    **named("real", real),
    **named("imag", imag),
    **named("conj resolve_conj", alike),
    "angle": lambda x: real(rules.fractions(x)),
    **named("complex polar", paired),
    "view_as_complex": as_complex,
    "view_as_real": as_real,
    **named("add", scaled(rules.joined)),
    **named("sub subtract", scaled(rules.calculated)),
    "rsub": scaled(rules.calculated),
    **named("bitwise_left_shift bitwise_right_shift gcd lcm", whole_pair),
    "isclose": lambda a, b, rtol, atol, nan: close(a, b, rtol, atol),
    "isin.Tensor_Tensor": lambda x, y, *more: only(
        rules.asked_whether(x), x.dtype is y.dtype
    ),
    **named("allclose equal is_nonzero", unasked),
    **named(_UNSIZED, unsized),
    # Over dimensions.
    **named("logsumexp special_logsumexp", kept(floats)),
    "nanmean": lambda x, dim, keepdim, kind: only(
        kept(floats)(x, dim, keepdim), kind is None
    ),
    "nansum": rules.total,
    "count_nonzero": lambda x, dim=None: Tensor(without(x, dim, False), int64),
    **named("var.dim std.dim var.correction std.correction", rules.spread),
    **named("var std", lambda x, unbiased: rules.spread(x)),
    **named("std_mean.dim var_mean.dim", twice(rules.spread)),
    **named("std_mean.correction var_mean.correction", twice(rules.spread)),
    **named("std_mean var_mean", twice(lambda x, unbiased: rules.spread(x))),
    "aminmax": twice(row),
    "mode": two(lambda x, dim, keepdim: only(row(x, dim, keepdim), x.ndim)),
    "kthvalue": two(nth),
    **named("cummax cummin", two(lambda x, dim: at(x, dim, alike))),
    "logcumsumexp": lambda x, dim: at(x, dim, of_floats),
    "diff": differences,
    "quantile.scalar": lambda x, q, dim, keepdim, *more: only(
        kept(floats)(x, dim, keepdim), 0 <= q <= 1, x.numel()
    ),
    "searchsorted": ranked,
    "bucketize": lambda x, edges, *more: only(
        ranked(edges, x, *more), edges.ndim == 1
    ),
    "fft_rfft": halved(2),
    "fft_irfft": halved(2, back=True),
    **named("fft_fft fft_ifft", halved(1)),
    **named("fft_fft2 fft_ifft2 fft_fftn fft_ifftn", fourier),
    **named(
        "fft_fftshift fft_ifftshift", lambda x, dim: only(alike(x), dim is None)
    ),
    # By places.
    **named("scatter.src scatter.value scatter_add scatter_reduce", scattered),
    **named("index_add index_copy", added_at),
    "index_fill": filled_at,
    "take": taken,
    "unfold": windows,
    # In another shape.
    "tile": tiled,
    "ravel": lambda x: shapes.reshape(x, [-1]),
    "reshape_as": lambda x, other: shapes.reshape(x, other.shape),
    **named("movedim.intlist moveaxis.intlist", moved),
    **named("movedim.int moveaxis.int", lambda x, a, b: moved(x, [a], [b])),
    **named("tensor_split.sections", parts),
    "split_with_sizes": shapes.split,
    "hstack": joined(1, 1),
    **named("vstack row_stack", joined(2, 0)),
    "column_stack": joined(2, 1),
    "triu_indices": corner(0),
    "tril_indices": corner(1),
    "roll": rolled,
    "fliplr": lambda x: only(alike(x), x.ndim > 1),
    "flipud": lambda x: only(alike(x), x.ndim),
    "diag": cornered,
    "diag_embed": lambda x, *more: only(
        Tensor([*x.shape, *x.shape[-1:]], x.dtype), more == (0, -2, -1), x.ndim
    ),
    "channel_shuffle": shuffled,
    "pixel_unshuffle": unshuffled,
    # Products.
    "inner": inner,
    "vdot": rules.dot,
    "ger": rules.outer,
    "functional.cdist": lambda a, b, p, mode: distances(a, b, p, None),
    "pairwise_distance": lambda a, b, p, eps, keepdim: kept(floats)(
        of_all(a, b), -1, keepdim
    ),
    "addmm": lambda x, a, b, *by: rules.added(x, rules.mm(a, b)),
    "baddbmm": lambda x, a, b, *by: rules.added(x, rules.bmm(a, b)),
    "trace": lambda x: only(rules.total(x), x.ndim == 2, x.dtype is not bool_),
    **named("inverse linalg_inv", square),
    "linalg_cholesky": lambda x, upper: square(x),
    **named("det linalg_det", less),
    "linalg_vector_norm": length,
    "linalg_cross": crossed,
    "dist": lambda a, b, p: only(
        Tensor((), floats(a, b)), of_all(a, b).numel()
    ),
    "bilinear": bilinear,
    "prelu": lambda x, weight: only(
        alike(x), floats(x, weight), weight.shape in ((1,), x.shape[1:2])
    ),
    "layer_norm": lambda x, shape, weight, bias, eps, fast: nets.layer_norm(
        x, shape, weight, bias
    ),
    "group_norm": lambda x, n, weight, bias, eps, fast: nets.group_norm(
        x, n, weight, bias
    ),
    "repeat_interleave.self_int": shapes.repeat_interleave,
    "numel": lambda x: x.shape.numel(),
    "is_floating_point": lambda x: x.dtype.is_floating_point,
    "is_complex": lambda x: x.dtype.is_complex,
    "element_size": lambda x: x.dtype.itemsize,
    "functional.tensordot": folded,
    # Networks.
    **{name: rule for n in (1, 2, 3) for name, rule in _windows(n).items()},
    "F.threshold": floated,
    "F.rrelu": lambda x, low, high, *more: only(of_floats(x), low <= high),
    "F.gumbel_softmax": lambda x, tau, hard, eps, dim: at(
        x, dim, lambda x: only(of_floats(x), tau > 0, eps >= 0)
    ),
    "F.local_response_norm": lambda x, size, *more: only(
        of_floats(x), x.ndim > 2, type(size) is int and size > 0, x.numel()
    ),
    "F.instance_norm": of_instances,
    "F.embedding_bag": bags,
    "F.unfold": columns,
    "F.fold": summed,
    "F.grid_sample": sampled,
    "F.smooth_l1_loss": loss("reduction", "beta"),
    "F.huber_loss": loss("reduction", "beta", "weight"),
    "F.kl_div": loss("reduction", "log_target"),
    "F.binary_cross_entropy": loss("weight", "reduction"),
    "F.binary_cross_entropy_with_logits": loss(
        "weight", "reduction", "pos_weight"
    ),
    "F.soft_margin_loss": loss("reduction"),
    **named("F.mse_loss F.l1_loss", loss("reduction", "weight")),
    **named("F.nll_loss F.cross_entropy", classes),
    **named(
        "F.relu F.relu6 F.silu F.mish F.selu F.hardswish F.hardsigmoid "
        "F.softsign F.tanhshrink F.leaky_relu F.elu softplus log_sigmoid",
        floated,
    ),
    "F.celu": lambda x, alpha, inplace: only(of_floats(x), alpha),
    "F.hardtanh": lambda x, low, high, _: only(of_floats(x), low <= high),
    **named("F.dropout F.alpha_dropout", dropped()),
    "F.dropout1d": dropped(3, 3),
    **named("F.dropout2d F.dropout3d F.feature_alpha_dropout", dropped(3)),
    **named(
        "F.softmax F.log_softmax F.softmin softmax.int log_softmax.int",
        rules.shared,
    ),
    "F.glu": nets.glu,
    "F.layer_norm": nets.layer_norm,
    "F.rms_norm": nets.rms_norm,
    "F.group_norm": nets.group_norm,
    "F.batch_norm": nets.batch_norm,
    "F.normalize": nets.normalize,
    "F.embedding": nets.embedding,
    "F.interpolate": lambda *given: only(
        nets.interpolate(*given[:-1]), not given[-1]
    ),
    "F.pad": nets.pad,
    "pad": nets.pad,
    "one_hot": shapes.one_hot,
    "scaled_dot_product_attention": lambda *given, enable_gqa=False: only(
        nets.scaled_dot_product_attention(*given[:6], scale=given[6]),
        given[7:] in ((), (False,)),
    ),
    # In place, and drawn.
    **named("fill_", filled),
    "zero_": alike,
    "copy_": written,
    "uniform_": lambda x, low, high: only(of_floats(x), low <= high),
    "normal_": lambda x, mean, std: only(of_floats(x), std >= 0),
    "exponential_": lambda x, by: only(of_floats(x), by > 0),
    "softshrink": lambda x, by: only(of_floats(x), by >= 0),
    "threshold": floated,
    "random_": alike,
    "random_.to": lambda x, to: only(alike(x), to > 0, x.dtype.category > 0),
    "normal": normal,
}
"""The rules, by the names of forms."""


COMPLEX: Final = frozenset(
    (
        "add sub subtract mul multiply div divide true_divide neg negative "
        "matmul mm bmm mv dot outer einsum sum prod mean exp sqrt sin cos tanh "
        "sigmoid log pow square reciprocal abs absolute angle conj real imag "
        "view_as_real reshape view flatten unflatten permute transpose t cat "
        "stack split chunk unbind squeeze unsqueeze expand repeat contiguous "
        "clone detach to type zeros_like ones_like eq ne __getitem__ zeros "
        "ones empty full randn tensor fft_fft fft_ifft fft_fft2 fft_ifft2 "
        "fft_fftn fft_ifftn fft_irfft resolve_conj tile roll flip where "
        "is_complex is_floating_point size type_as select narrow T mT "
        "index_select gather requires_grad_ is_contiguous view_as expand_as "
        "broadcast_to swapaxes movedim new_zeros new_ones new_empty fft ifft "
        "fft2 ifft2 fftn ifftn irfft numel element_size __setitem__ real imag"
    ).split()
)
"""Functions whose rules hold for complex numbers, too."""
