"""A stand-in for torch: shapes of convolutions, windows, norms and losses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import starmap

from . import _rules as rules
from ._rules import (
    Rule,
    floats,
    int_index,
    known,
    need,
    of_floats,
    only,
    refuse,
    two,
)
from ._tensor import AnyValue, Tensor, bool_, broadcast, int64


def each(value: AnyValue, count: int) -> list[int]:
    """A setting for each dimension of an image."""
    found = [value] * count if type(value) is int else [*value]
    found = found * count if len(found) == 1 else found
    need(len(found) == count, *(type(one) is int for one in found))
    return found


def pooled(
    x: Tensor, n: int, size: AnyValue, *more: AnyValue, half: bool = True
) -> list[int]:
    """Sizes of an image after a window has passed over it."""
    need(x.numel())
    stride, padding, dilation, up = more
    step = size if stride is None or stride == [] else stride
    rows = (each(one, n) for one in (size, step, padding, dilation))
    sizes = zip(x.shape[-n:], *rows, strict=True)
    return [_passed(one, up, half) for one in sizes]


def _passed(row: Sequence[int], up: bool, half: bool) -> int:
    """How many places a window has."""
    size, k, s, p, d = row
    need(k > 0, s > 0, p >= 0, d > 0)
    if half and p > k // 2:
        refuse(f"padding {p} is more than half of the window {k}")
    span = size + 2 * p - d * (k - 1) - 1
    found = (span + (s - 1) * up) // s + 1
    if up and (found - 1) * s >= size + p:
        found -= 1
    if found < 1 or (not half and span < 0):
        refuse(f"a window of {d * (k - 1) + 1} on an image of {size + 2 * p}")
    return found


def _fits(x: Tensor, weight: Tensor, bias: Tensor | None, *n: int) -> None:
    """Refuse an image with other dimensions, or with other channels."""
    count, wanted, outs = n
    if x.ndim not in (count + 1, count + 2):
        refuse(f"{list(x.shape)} is no image of {count} dimensions")
    found = x.shape[-count - 1]
    if found != wanted:
        refuse(f"the weight expects {wanted} channels, the input has {found}")
    need(floats(x, weight), outs, wanted, weight.ndim == count + 2)
    if bias is not None:
        need(bias.shape == (outs,), bias.dtype is x.dtype)


def convolution(n: int) -> AnyValue:
    """The rule for a convolution of so many dimensions."""

    def conv(
        x: Tensor, weight: Tensor, bias: Tensor | None, *more: AnyValue
    ) -> Tensor:
        stride, padding, dilation, groups = more
        outs, inner, *size = weight.shape
        need(groups > 0 and outs % groups == 0)
        _fits(x, weight, bias, n, inner * groups, outs)
        if padding == "same":
            need(each(stride, n) == [1] * n, min(size))
            need(min(each(dilation, n)) > 0)
            space = [*x.shape[-n:]]
        else:
            edge = 0 if padding == "valid" else padding
            window = (size, stride, edge, dilation, False)
            space = pooled(x, n, *window, half=False)
        return Tensor([*x.shape[: -n - 1], outs, *space], x.dtype)

    return conv


def spreading(n: int) -> AnyValue:
    """The rule for a transposed convolution of so many dimensions."""

    def conv_transpose(
        x: Tensor, weight: Tensor, bias: Tensor | None, *more: AnyValue
    ) -> Tensor:
        stride, padding, behind, groups, dilation = more
        inner, outer, *size = weight.shape
        _fits(x, weight, bias, n, inner, outer * groups)
        need(x.numel(), inner % groups == 0)
        settings = (stride, padding, behind, dilation)
        rows = (each(one, n) for one in settings)
        sizes = zip(x.shape[-n:], size, *rows, strict=True)
        space = list(starmap(_spread, sizes))
        return Tensor([*x.shape[: -n - 1], outer * groups, *space], x.dtype)

    return conv_transpose


def _spread(size: int, k: int, s: int, p: int, more: int, d: int) -> int:
    need(k > 0, s > 0, p >= 0, d > 0, 0 <= more < max(s, d))
    found = (size - 1) * s - 2 * p + d * (k - 1) + more + 1
    need(found > 0)
    return found


def most(n: int) -> AnyValue:
    """The rule for the largest number of a window of so many dimensions."""

    def pool(x: Tensor, *window: AnyValue) -> Tensor:
        need(x.ndim in (n + 1, n + 2), floats(x))
        return Tensor([*x.shape[:-n], *pooled(x, n, *window)], x.dtype)

    return pool


def average(n: int) -> AnyValue:
    """The rule for the mean of a window of so many dimensions."""
    return lambda x, size, stride, padding, up, *more: most(n)(
        x, size, stride, padding, 1, up
    )


def adaptive(n: int) -> AnyValue:
    """The rule for windows that give an image of a given size."""

    def pool(x: Tensor, size: AnyValue) -> Tensor:
        need(x.ndim in (n + 1, n + 2), floats(x), x.numel())
        sizes = [size] * n if type(size) is int else [*size]
        pairs = zip(sizes, x.shape[-n:], strict=True)
        new = [b if a is None else a for a, b in pairs]
        need(*(type(one) is int and one > 0 for one in new))
        return Tensor([*x.shape[:-n], *new], x.dtype)

    return pool


_DIMS = {"linear": (3,), "bilinear": (4,), "bicubic": (4,), "trilinear": (5,)}
_MODES = dict.fromkeys(("nearest", "nearest-exact", "area"), (3, 4, 5)) | _DIMS


def interpolate(
    x: Tensor, size: AnyValue, scale: AnyValue, mode: str, align: bool | None
) -> Tensor:
    """An image of another size."""
    n = x.ndim - 2
    need(x.ndim in _MODES[mode], floats(x), x.numel())
    need(align is None or mode in _DIMS)
    need((size is None) != (scale is None))
    if size is not None:
        new = [size] * n if type(size) is int else [*size]
    else:
        by = [scale] * n if type(scale) in (int, float) else [*scale]
        pairs = zip(x.shape[2:], by, strict=True)
        new = [math.floor(float(a) * b) for a, b in pairs]
    need(len(new) == n, *(type(one) is int and one > 0 for one in new))
    return Tensor([*x.shape[:2], *new], x.dtype)


def pad(
    x: Tensor, pad: Sequence[int], mode: str, value: float | None
) -> Tensor:
    """With more numbers at its edges."""
    need(*(type(one) is int for one in pad), x.numel())
    if len(pad) % 2 or len(pad) > 2 * x.ndim:
        refuse(f"padding of {len(pad)} for {x.ndim} dimensions")
    shape = list(x.shape)
    if mode != "constant":
        need(mode in ("reflect", "replicate", "circular"), floats(x))
        need(not value, len(pad) == 2 * (x.ndim - 2), min(pad) >= 0)
    need(not value or type(value) is not float or floats(x))
    for at in range(len(pad) // 2):
        old = shape[-1 - at]
        before, after = pad[2 * at], pad[2 * at + 1]
        need(mode != "reflect" or max(before, after) < old)
        need(mode != "circular" or max(before, after) <= old)
        need(before > -old, after > -old, old + before + after > 0)
        shape[-1 - at] += before + after
    return Tensor(shape, x.dtype)


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Channels as a larger image."""
    *lead, channels, high, wide = input.shape
    by = upscale_factor
    need(by > 0, channels % by**2 == 0, input.numel())
    shape = [*lead, channels // by**2, high * by, wide * by]
    return Tensor(shape, input.dtype)


def embedding(
    x: Tensor, weight: Tensor, pad: int | None, limit: None, *more: AnyValue
) -> Tensor:
    """The rows of a matrix with some numbers."""
    need(weight.ndim == 2, weight.numel(), limit is None)
    need(pad is None or -weight.shape[0] <= pad < weight.shape[0])
    return Tensor([*int_index(x).shape, weight.shape[-1]], weight.dtype)


def glu(x: Tensor, dim: int) -> Tensor:
    """Half of a tensor, by the other half."""
    at = known(dim, x.ndim)
    need(floats(x), x.ndim, x.shape[at] % 2 == 0)
    return Tensor(
        [*x.shape[:at], x.shape[at] // 2, *x.shape[at + 1 :]], x.dtype
    )


def normalize(x: Tensor, p: AnyValue, dim: int, eps: float) -> Tensor:
    """Of length 1 along a dimension."""
    known(dim, x.ndim)
    need(type(p) in (int, float))
    return of_floats(x)


# --- norms ------------------------------------------------------------------


def layer_norm(x: Tensor, sizes: AnyValue, *weights: AnyValue) -> Tensor:
    """Of mean 0 and variance 1 over the last dimensions."""
    shape = (*sizes,)
    need(shape)
    if x.shape[-len(shape) :] != shape:
        refuse(f"expects [..., {str([*shape])[1:]}, got {list(x.shape)}")
    fit_weights(x, shape, *weights)
    return of_floats(x)


def fit_weights(input: Tensor, shape: AnyValue, *given: Tensor | None) -> None:
    """Refuse weights of another shape."""
    for one in given:
        if one is not None:
            if one.shape != shape:
                refuse(f"a weight of {list(one.shape)}, not {list(shape)}")
            need(one.dtype is input.dtype)


def group_norm(x: Tensor, groups: int, *weights: AnyValue) -> Tensor:
    """Of mean 0 and variance 1 over groups of channels."""
    need(x.ndim > 1, x.numel(), groups > 0)
    if x.shape[1] % groups:
        refuse(f"{x.shape[1]} channels in {groups} groups")
    need(x.numel() > groups)
    fit_weights(x, x.shape[1:2], *weights)
    return of_floats(x)


def batch_norm(x: Tensor, *given: AnyValue) -> Tensor:
    """Of mean 0 and variance 1 over a batch."""
    *weights, training, _, eps = given
    need(x.ndim > 1, x.numel(), eps > 0)
    need(training or None not in weights[:2])
    fit_weights(x, x.shape[1:2], *weights)
    if training and x.numel() == x.shape[1]:
        refuse("more than one value per channel is needed for training")
    return of_floats(x)


# --- losses and attention ---------------------------------------------------


def lost(shape: Sequence[int], dtype: AnyValue, reduction: str) -> Tensor:
    """One number, or one for each if they are not reduced."""
    need(reduction in ("none", "mean", "sum"))
    return Tensor(shape if reduction == "none" else (), dtype)


def classes(
    x: Tensor, y: Tensor, w: Tensor | None, ignore: int, to: str, by: float = 0
) -> Tensor:
    """How far numbers for classes are from the right class."""
    need(floats(x), y.dtype is int64, 0 <= by <= 1)
    need(x.ndim > 0, x.numel(), y.ndim == x.ndim - 1)
    at = min(1, x.ndim - 1)
    if [*x.shape[:at], *x.shape[at + 1 :]] != [*y.shape]:
        refuse(f"a target of {list(y.shape)} for {list(x.shape)}")
    fit_weights(x, x.shape[at : at + 1], w)
    return lost(y.shape, x.dtype, to)


def cosine_similarity(a: Tensor, b: Tensor, dim: int, eps: float) -> Tensor:
    """How much vectors point to one side."""
    shape = broadcast(a.shape, b.shape)
    need(shape)
    del shape[known(dim, len(shape))]
    return Tensor(shape, floats(a, b))


def attention(
    query: Tensor, key: Tensor, value: Tensor, mask: AnyValue, *more: AnyValue
) -> Tensor:
    """Values, mixed by how much the keys are like the queries."""
    dropout, causal, _, *grouped = more
    need(grouped in ([], [False]))
    need(min(query.ndim, key.ndim, value.ndim) > 1, query.numel())
    need(key.numel(), value.numel(), 0 <= dropout <= 1)
    floats(query, key, value)
    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        refuse(
            f"a query of {list(query.shape)}, a key of {list(key.shape)} and "
            f"a value of {list(value.shape)} do not fit"
        )
    lead = query.shape[:-2]
    need(lead == key.shape[:-2] == value.shape[:-2])
    if mask is not None:
        need(not causal, mask.dtype in (bool_, query.dtype))
        whole = [*lead, query.shape[-2], key.shape[-2]]
        need(broadcast(mask.shape, whole) == whole, mask.ndim > 1)
    return Tensor([*query.shape[:-1], value.shape[-1]], query.dtype)


# --- windows, bags and losses ------------------------------------------------


def columns(
    x: Tensor, k: AnyValue, d: AnyValue, p: AnyValue, s: AnyValue
) -> Tensor:
    """The windows of an image, each as a column."""
    need(x.ndim in (3, 4), floats(x))
    space = pooled(x, 2, k, each(s, 2), p, d, False, half=False)
    inner = x.shape[-3] * math.prod(each(k, 2))
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
    inner = math.prod(each(k, 2))
    shape = [*x.shape[:-2], x.shape[-2] // inner, *each(size, 2)]
    need(columns(Tensor(shape, x.dtype), k, d, p, s).shape == x.shape)
    return Tensor(shape, x.dtype)


def grid(theta: Tensor, size: AnyValue, _: AnyValue) -> Tensor:
    """Where each number of an image comes from."""
    sizes = [*size]
    places = len(sizes) - 2
    need(places in (2, 3), all(type(size) is int for size in sizes))
    need(min(sizes) > 0, theta.dtype.is_floating_point)
    if [*theta.shape] != [sizes[0], places, places + 1]:
        refuse(f"{theta.shape} does not place images of {sizes}")
    return Tensor([sizes[0], *sizes[2:], places], theta.dtype)


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
        need(x.shape == y.shape)
        return lost(x.shape, floats(x, y), reduction)

    return rule


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
    fit_weights(x, x.shape[1:2], weight, bias)
    return of_floats(x)


def of_dims(n: int) -> dict[str, Rule]:
    """The rules for images of so many dimensions, by name."""
    adapted, largest, mean = adaptive(n), most(n), average(n)

    def placed(rule: Rule) -> Rule:
        """With places if the last argument says so."""
        return lambda *given: (two(rule) if given[-1] else rule)(*given[:-1])

    return {
        f"conv{n}d": convolution(n),
        f"conv_transpose{n}d": spreading(n),
        f"F.max_pool{n}d": placed(largest),
        f"F.adaptive_max_pool{n}d": placed(adapted),
        f"F.adaptive_avg_pool{n}d": adapted,
        f"adaptive_avg_pool{n}d": adapted,
        f"avg_pool{n}d": lambda x, k, s, p, up, whole, by=None: only(
            mean(x, k, s, p, up), by is None
        ),
        f"F.lp_pool{n}d": lambda x, p, k, s, up: only(
            mean(x, k, s, 0, up), type(p) in (int, float), p
        ),
    }
