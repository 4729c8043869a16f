"""A stand-in for torch: shapes of convolutions, windows, norms and losses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import starmap

from ._rules import floats, int_index, known, need, of_floats, refuse
from ._tensor import AnyValue, Tensor, bool_, broadcast, int64


def each(value: AnyValue, count: int) -> list[int]:
    """A setting for each dimension of an image."""
    found = [value] * count if type(value) is int else [*value]
    found = found * count if len(found) == 1 else found
    need(len(found) == count, *(type(one) is int for one in found))
    return found


def pooled(
    input: Tensor,
    count: int,
    kernel_size: AnyValue,
    stride: AnyValue = None,
    padding: AnyValue = 0,
    dilation: AnyValue = 1,
    ceil_mode: bool = False,
    half: bool = True,
) -> list[int]:
    """Sizes of an image after a window has passed over it."""
    need(input.numel())
    step = kernel_size if stride is None or stride == [] else stride
    k, s, p = (each(one, count) for one in (kernel_size, step, padding))
    d = each(dilation, count)
    sizes = zip(input.shape[-count:], k, s, p, d, strict=True)
    return [_passed(*one, ceil_mode, half) for one in sizes]


def _passed(
    size: int, k: int, s: int, p: int, d: int, up: bool, half: bool
) -> int:
    """How many places a window has."""
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


def _image(input: Tensor, count: int) -> None:
    """Refuse what has too few dimensions, or too many."""
    if input.ndim not in (count + 1, count + 2):
        refuse(f"{list(input.shape)} is no image of {count} dimensions")


def convolution(count: int) -> AnyValue:
    """The rule for so many dimensions."""

    def conv(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: AnyValue = 1,
        padding: AnyValue = 0,
        dilation: AnyValue = 1,
        groups: int = 1,
    ) -> Tensor:
        """A convolution."""
        _image(input, count)
        channels, inner, *size = weight.shape
        need(floats(input, weight), len(size) == count, groups > 0)
        need(channels % groups == 0, channels, inner)
        _channels(input, count, inner * groups)
        _fits(bias, channels, input)
        if padding == "same":
            need(each(stride, count) == [1] * count, min(size))
            need(min(each(dilation, count)) > 0)
            space = [*input.shape[-count:]]
        else:
            edge = 0 if padding == "valid" else padding
            space = pooled(
                input, count, size, stride, edge, dilation, half=False
            )
        lead = input.shape[: -count - 1]
        return Tensor([*lead, channels, *space], input.dtype)

    return conv


def _channels(input: Tensor, count: int, wanted: int) -> None:
    found = input.shape[-count - 1]
    if found != wanted:
        refuse(f"the weight expects {wanted} channels, the input has {found}")


def _fits(bias: Tensor | None, channels: int, input: Tensor) -> None:
    """Say that a result is not known if a bias is not that of the channels."""
    if bias is not None:
        need(bias.shape == (channels,), bias.dtype is input.dtype)


def spreading(count: int) -> AnyValue:
    """The rule for a transposed convolution of so many dimensions."""

    def conv_transpose(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: AnyValue = 1,
        padding: AnyValue = 0,
        output_padding: AnyValue = 0,
        groups: int = 1,
        dilation: AnyValue = 1,
    ) -> Tensor:
        """A transposed convolution."""
        _image(input, count)
        inner, outer, *size = weight.shape
        _channels(input, count, inner)
        channels = outer * groups
        need(floats(input, weight), input.numel(), inner % groups == 0)
        need(channels)
        _fits(bias, channels, input)
        settings = (stride, padding, output_padding, dilation)
        rows = zip(
            input.shape[-count:],
            size,
            *(each(one, count) for one in settings),
            strict=True,
        )
        space = list(starmap(_spread, rows))
        lead = input.shape[: -count - 1]
        return Tensor([*lead, channels, *space], input.dtype)

    return conv_transpose


def _spread(size: int, k: int, s: int, p: int, more: int, d: int) -> int:
    need(k > 0, s > 0, p >= 0, d > 0, 0 <= more < max(s, d))
    found = (size - 1) * s - 2 * p + d * (k - 1) + more + 1
    need(found > 0)
    return found


def most(count: int) -> AnyValue:
    """The rule for the largest number of a window of so many dimensions."""

    def max_pool(
        input: Tensor,
        kernel_size: AnyValue,
        stride: AnyValue = None,
        padding: AnyValue = 0,
        dilation: AnyValue = 1,
        ceil_mode: bool = False,
    ) -> Tensor:
        """The largest number of each window."""
        need(input.ndim in (count + 1, count + 2), floats(input))
        space = pooled(
            input, count, kernel_size, stride, padding, dilation, ceil_mode
        )
        return Tensor([*input.shape[:-count], *space], input.dtype)

    return max_pool


def average(count: int) -> AnyValue:
    """The rule for the mean of a window of so many dimensions."""

    def avg_pool(
        input: Tensor,
        kernel_size: AnyValue,
        stride: AnyValue = None,
        padding: AnyValue = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> Tensor:
        """The mean of each window."""
        return most(count)(  # type: ignore[no-any-return]
            input, kernel_size, stride, padding, 1, ceil_mode
        )

    return avg_pool


def adaptive(count: int) -> AnyValue:
    """The rule for windows that give an image of a given size."""

    def adaptive_pool(input: Tensor, output_size: AnyValue) -> Tensor:
        """As many windows as are asked for."""
        need(input.ndim in (count + 1, count + 2))
        old = input.shape[-count:]
        alone = type(output_size) is int
        sizes = [output_size] * count if alone else [*output_size]
        need(len(sizes) == count, floats(input), input.numel())
        pairs = zip(sizes, old, strict=True)
        new = [b if a is None else a for a, b in pairs]
        need(*(type(one) is int and one > 0 for one in new))
        return Tensor([*input.shape[:-count], *new], input.dtype)

    return adaptive_pool


_MODES = {
    "nearest": (3, 4, 5),
    "nearest-exact": (3, 4, 5),
    "area": (3, 4, 5),
    "linear": (3,),
    "bilinear": (4,),
    "bicubic": (4,),
    "trilinear": (5,),
}


def interpolate(
    input: Tensor,
    size: AnyValue = None,
    scale_factor: AnyValue = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """An image of another size."""
    count = input.ndim - 2
    need(input.ndim in _MODES[mode], floats(input), input.numel())
    need(align_corners is None or "linear" in mode or mode == "bicubic")
    need((size is None) != (scale_factor is None))
    old = input.shape[2:]
    if size is not None:
        new = [size] * count if type(size) is int else [*size]
    else:
        alone = type(scale_factor) in (int, float)
        by = [scale_factor] * count if alone else [*scale_factor]
        pairs = zip(old, by, strict=True)
        new = [math.floor(float(a) * b) for a, b in pairs]
    need(len(new) == count, *(type(one) is int and one > 0 for one in new))
    return Tensor([*input.shape[:2], *new], input.dtype)


def pad(
    input: Tensor,
    pad: Sequence[int],
    mode: str = "constant",
    value: float | None = None,
) -> Tensor:
    """With more numbers at its edges."""
    need(*(type(one) is int for one in pad), input.numel())
    if len(pad) % 2 or len(pad) > 2 * input.ndim:
        refuse(f"padding of {len(pad)} for {input.ndim} dimensions")
    shape = list(input.shape)
    if mode != "constant":
        need(mode in ("reflect", "replicate", "circular"), floats(input))
        need(not value)
        need(len(pad) == 2 * (input.ndim - 2), min(pad) >= 0)
    need(not value or type(value) is not float or floats(input))
    for at in range(len(pad) // 2):
        old = shape[-1 - at]
        before, after = pad[2 * at], pad[2 * at + 1]
        need(mode != "reflect" or max(before, after) < old)
        need(mode != "circular" or max(before, after) <= old)
        need(before > -old, after > -old, old + before + after > 0)
        shape[-1 - at] += before + after
    return Tensor(shape, input.dtype)


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Channels as a larger image."""
    *lead, channels, high, wide = input.shape
    by = upscale_factor
    need(by > 0, channels % by**2 == 0, input.numel())
    shape = [*lead, channels // by**2, high * by, wide * by]
    return Tensor(shape, input.dtype)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of a matrix with some numbers."""
    need(weight.ndim == 2, weight.numel(), max_norm is None)
    if padding_idx is not None:
        need(-weight.shape[0] <= padding_idx < weight.shape[0])
    return Tensor([*int_index(input).shape, weight.shape[-1]], weight.dtype)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Half of a tensor, by the other half."""
    at = known(dim, input.ndim)
    need(floats(input), input.ndim, input.shape[at] % 2 == 0)
    shape = [*input.shape[:at], input.shape[at] // 2, *input.shape[at + 1 :]]
    return Tensor(shape, input.dtype)


def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12
) -> Tensor:
    """Of length 1 along a dimension."""
    known(dim, input.ndim)
    return of_floats(input)


# --- norms ------------------------------------------------------------------


def layer_norm(
    input: Tensor,
    normalized_shape: AnyValue,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Of mean 0 and variance 1 over the last dimensions."""
    shape = (*normalized_shape,)
    need(shape)
    if input.shape[-len(shape) :] != shape:
        refuse(f"expects [..., {str([*shape])[1:]}, got {list(input.shape)}")
    fit_weights(input, shape, weight, bias)
    return of_floats(input)


def fit_weights(input: Tensor, shape: AnyValue, *given: Tensor | None) -> None:
    """Refuse weights of another shape."""
    for one in given:
        if one is not None:
            if one.shape != shape:
                refuse(f"a weight of {list(one.shape)}, not {list(shape)}")
            need(one.dtype is input.dtype)


def rms_norm(
    input: Tensor,
    normalized_shape: AnyValue,
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """As `layer_norm`, without the mean."""
    return layer_norm(input, normalized_shape, weight)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Of mean 0 and variance 1 over groups of channels."""
    need(input.ndim > 1, input.numel(), num_groups > 0)
    channels = input.shape[1]
    if channels % num_groups:
        refuse(f"{channels} channels in {num_groups} groups")
    need(input.numel() > num_groups)
    fit_weights(input, (channels,), weight, bias)
    return of_floats(input)


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Of mean 0 and variance 1 over a batch."""
    need(input.ndim > 1, input.numel(), eps > 0)
    need(training or (running_mean is not None and running_var is not None))
    channels = (input.shape[1],)
    fit_weights(input, channels, running_mean, running_var, weight, bias)
    if training and input.numel() == input.shape[1]:
        refuse("more than one value per channel is needed for training")
    return of_floats(input)


# --- losses and attention ---------------------------------------------------


def lost(shape: Sequence[int], dtype: AnyValue, reduction: str) -> Tensor:
    """One number, or one for each if they are not reduced."""
    need(reduction in ("none", "mean", "sum"))
    return Tensor(shape if reduction == "none" else (), dtype)


def compared_loss(
    input: Tensor, target: Tensor, *, reduction: str = "mean"
) -> Tensor:
    """How far numbers are from others."""
    need(input.shape == target.shape)
    return lost(input.shape, floats(input, target), reduction)


def nll_loss(
    input: Tensor,
    target: Tensor,
    *,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> Tensor:
    """How far numbers for classes are from the right class."""
    need(floats(input), target.dtype is int64)
    need(input.ndim > 0, input.numel(), target.ndim == input.ndim - 1)
    at = min(1, input.ndim - 1)
    if [*input.shape[:at], *input.shape[at + 1 :]] != [*target.shape]:
        refuse(f"a target of {list(target.shape)} for {list(input.shape)}")
    return lost(target.shape, input.dtype, reduction)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    *,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Tensor:
    """As `nll_loss`, of numbers that do not sum up to 1."""
    need(0 <= label_smoothing <= 1)
    return nll_loss(
        input, target, reduction=reduction, ignore_index=ignore_index
    )


def cosine_similarity(
    x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8
) -> Tensor:
    """How much vectors point to one side."""
    shape = broadcast(x1.shape, x2.shape)
    need(shape)
    del shape[known(dim, len(shape))]
    return Tensor(shape, floats(x1, x2))


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
) -> Tensor:
    """Values, mixed by how much the keys are like the queries."""
    need(min(query.ndim, key.ndim, value.ndim) > 1, query.numel())
    need(key.numel(), value.numel(), 0 <= dropout_p <= 1)
    floats(query, key, value)
    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        refuse(
            f"a query of {list(query.shape)}, a key of {list(key.shape)} and "
            f"a value of {list(value.shape)} do not fit"
        )
    lead = query.shape[:-2]
    need(lead == key.shape[:-2] == value.shape[:-2])
    if attn_mask is not None:
        need(not is_causal, attn_mask.dtype in (bool_, query.dtype))
        whole = [*lead, query.shape[-2], key.shape[-2]]
        need(broadcast(attn_mask.shape, whole) == whole, attn_mask.ndim > 1)
    return Tensor([*query.shape[:-1], value.shape[-1]], query.dtype)
