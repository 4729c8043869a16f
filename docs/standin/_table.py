"""A stand-in for torch: the rule of each form of torch's functions.

A rule takes what the form's parameters get, in their order, but for those that
matter neither for shape nor dtype (`_forms.PLAIN`).  A key without a dot is
the rule of all forms of a function, unless it has keys with dots, too.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Final

from . import _nets as nets
from . import _rules as rules
from . import _shapes as shapes
from ._rules import (
    alike,
    beside,
    counted,
    floated,
    floats,
    kept,
    of_all,
    of_floats,
    only,
    twice,
    two,
    unasked,
    unsized,
    without,
)
from ._shapes import cast
from ._tensor import AnyValue, Tensor, bool_, float32, int64

Rule = Callable[..., AnyValue]


def named(names: str, rule: Rule) -> dict[str, Rule]:
    """One rule for several functions."""
    return dict.fromkeys(names.split(), rule)


def by_name(module: ModuleType, names: str, at: str = "") -> dict[str, Rule]:
    """Rules of functions that have their names."""
    return {at + name: getattr(module, name) for name in names.split()}


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
    **by_name(
        shapes,
        "permute t unsqueeze repeat flip diagonal gather index_select narrow "
        "stack chunk multinomial full_like one_hot normal reshape view",
    ),
    **by_name(
        rules,
        "masked_fill matmul outer linear bilinear mm bmm mv dot real imag",
    ),
    **by_name(nets, "cosine_similarity pixel_shuffle pad"),
    **by_name(nets, "glu batch_norm normalize embedding pad", "F."),
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
    "median.dim": two(rules.of_row),
    **named("max.other min.other", rules.joined),
    **named("argmax argmin", rules.found_at),
    **named("all any all.dim any.dim all.dims any.dims", rules.whether),
    **named("cumsum cumprod", rules.running),
    "sort": two(lambda x, dim, down: beside(x, dim, alike)),
    "sort.stable": two(lambda x, stable, dim, down: beside(x, dim, alike)),
    "argsort": lambda x, dim, down: cast(beside(x, dim, alike), int64),
    "argsort.stable": lambda x, _, dim, down: cast(
        beside(x, dim, alike), int64
    ),
    "topk": two(rules.topk),
    "view_as": lambda x, other: shapes.view(x, other.shape),
    "flatten.using_ints": shapes.flatten,
    "unflatten.int": shapes.unflatten,
    **named("transpose.int swapaxes swapdims", shapes.transpose),
    **named("squeeze squeeze.dim squeeze.dims", shapes.squeeze),
    **named("expand broadcast_to", shapes.expand),
    "expand_as": lambda x, other: shapes.expand(x, other.shape),
    **named("tril triu", shapes.triangle),
    "select.int": shapes.select,
    **named("cat concat concatenate", shapes.cat),
    **named("split.Tensor split.sizes functional.split", shapes.split),
    "unbind.int": shapes.unbind,
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
    **named(
        "hann_window hamming_window blackman_window bartlett_window",
        lambda n, kind: only(
            shapes.drawn([n], kind), (kind or float32).is_floating_point
        ),
    ),
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
    **named(_FRACTIONS, rules.fractions),
    **named(_OF_ALL, of_all),
    **named("frac sgn nan_to_num hardshrink", floated),
    **named("bernoulli.p", lambda x, p: only(alike(x), 0 <= p <= 1)),
    "bernoulli": of_floats,
    "poisson": of_floats,
    **named("abs absolute", rules.absolute),
    **named("conj resolve_conj", alike),
    "angle": lambda x: rules.real(rules.fractions(x)),
    **named("complex polar", rules.paired),
    "view_as_complex": rules.as_complex,
    "view_as_real": rules.as_real,
    **named("add", rules.scaled(rules.joined)),
    **named("sub subtract", rules.scaled(rules.calculated)),
    "rsub": rules.scaled(rules.calculated),
    **named("bitwise_left_shift bitwise_right_shift gcd lcm", rules.whole_pair),
    "isclose": lambda a, b, rtol, atol, nan: rules.nearly(a, b, rtol, atol),
    "isin.Tensor_Tensor": lambda x, y, *more: only(
        rules.asked_whether(x), x.dtype is y.dtype
    ),
    **named("allclose equal is_nonzero", unasked),
    **named(_UNSIZED, unsized),
    # Over dimensions.
    **named("logsumexp special_logsumexp", kept),
    "nanmean": lambda x, dim, keepdim, kind: only(
        kept(x, dim, keepdim), kind is None
    ),
    "nansum": rules.total,
    "count_nonzero": lambda x, dim=None: Tensor(without(x, dim, False), int64),
    **named("var.dim std.dim var.correction std.correction", rules.spread),
    **named("var std", lambda x, unbiased: rules.spread(x)),
    **named("std_mean.dim var_mean.dim", twice(rules.spread)),
    **named("std_mean.correction var_mean.correction", twice(rules.spread)),
    **named("std_mean var_mean", twice(lambda x, unbiased: rules.spread(x))),
    "aminmax": twice(rules.of_row),
    "mode": two(
        lambda x, dim, keepdim: only(rules.of_row(x, dim, keepdim), x.ndim)
    ),
    "kthvalue": two(rules.nth),
    **named("cummax cummin", two(lambda x, dim: beside(x, dim, alike))),
    "logcumsumexp": lambda x, dim: beside(x, dim, of_floats),
    "diff": rules.differences,
    "quantile.scalar": lambda x, q, dim, keepdim, *more: only(
        kept(x, dim, keepdim), 0 <= q <= 1, x.numel()
    ),
    "searchsorted": rules.ranked,
    "bucketize": lambda x, edges, *more: only(
        rules.ranked(edges, x, *more), edges.ndim == 1
    ),
    "fft_rfft": rules.halved(2),
    "fft_irfft": rules.halved(2, back=True),
    **named("fft_fft fft_ifft", rules.halved(1)),
    **named("fft_fft2 fft_ifft2 fft_fftn fft_ifftn", rules.fourier),
    **named(
        "fft_fftshift fft_ifftshift",
        lambda x, dim: only(alike(x), dim is None),
    ),
    # By places.
    **named(
        "scatter.src scatter.value scatter_add scatter_reduce", shapes.scattered
    ),
    **named("index_add index_copy", shapes.added_at),
    "index_fill": shapes.filled_at,
    "take": shapes.picked,
    "unfold": shapes.windows,
    # In another shape.
    "tile": shapes.tiled,
    "ravel": lambda x: shapes.reshape(x, [-1]),
    "reshape_as": lambda x, other: shapes.reshape(x, other.shape),
    **named("movedim.intlist moveaxis.intlist", shapes.moved),
    **named(
        "movedim.int moveaxis.int", lambda x, a, b: shapes.moved(x, [a], [b])
    ),
    **named("tensor_split.sections", shapes.parted),
    "split_with_sizes": shapes.split,
    "hstack": shapes.side_by_side(1, 1),
    **named("vstack row_stack", shapes.side_by_side(2, 0)),
    "column_stack": shapes.side_by_side(2, 1),
    "triu_indices": shapes.corner(0),
    "tril_indices": shapes.corner(1),
    "roll": shapes.rolled,
    "fliplr": lambda x: only(alike(x), x.ndim > 1),
    "flipud": lambda x: only(alike(x), x.ndim),
    "diag": shapes.cornered,
    "diag_embed": lambda x, *more: only(
        Tensor([*x.shape, *x.shape[-1:]], x.dtype), more == (0, -2, -1), x.ndim
    ),
    "channel_shuffle": shapes.shuffled,
    "pixel_unshuffle": shapes.unshuffled,
    # Products.
    "inner": rules.inner_product,
    "vdot": rules.dot,
    "ger": rules.outer,
    "functional.cdist": lambda a, b, p, mode: rules.distances(a, b, p, None),
    "pairwise_distance": lambda a, b, p, eps, keepdim: kept(
        of_all(a, b), -1, keepdim
    ),
    "addmm": lambda x, a, b, *by: rules.added(x, rules.mm(a, b)),
    "baddbmm": lambda x, a, b, *by: rules.added(x, rules.bmm(a, b)),
    "trace": lambda x: only(rules.total(x), x.ndim == 2, x.dtype is not bool_),
    **named("inverse linalg_inv", rules.square),
    "linalg_cholesky": lambda x, upper: rules.square(x),
    **named("det linalg_det", rules.of_matrix),
    "linalg_vector_norm": rules.vector_norm,
    "linalg_cross": rules.crossed,
    "dist": lambda a, b, p: only(
        Tensor((), floats(a, b)), of_all(a, b).numel()
    ),
    "prelu": lambda x, weight: only(
        alike(x), floats(x, weight), weight.shape in ((1,), x.shape[1:2])
    ),
    "layer_norm": lambda *given: nets.layer_norm(*given[:4]),
    "group_norm": lambda *given: nets.group_norm(*given[:4]),
    "repeat_interleave.self_int": shapes.repeat_interleave,
    "numel": lambda x: x.shape.numel(),
    "is_floating_point": lambda x: x.dtype.is_floating_point,
    "is_complex": lambda x: x.dtype.is_complex,
    "element_size": lambda x: x.dtype.itemsize,
    "functional.tensordot": rules.folded,
    # Networks.
    **nets.of_dims(1),
    **nets.of_dims(2),
    **nets.of_dims(3),
    "F.threshold": floated,
    "F.rrelu": lambda x, low, high, *more: only(of_floats(x), low <= high),
    "F.gumbel_softmax": lambda x, tau, hard, eps, dim: beside(
        x, dim, lambda x: only(of_floats(x), tau > 0, eps >= 0)
    ),
    "F.local_response_norm": lambda x, size, *more: only(
        of_floats(x), x.ndim > 2, type(size) is int and size > 0, x.numel()
    ),
    "F.instance_norm": nets.of_instances,
    "F.embedding_bag": nets.bags,
    "F.unfold": nets.columns,
    "F.fold": nets.summed,
    "F.grid_sample": nets.sampled,
    "F.affine_grid": nets.grid,
    "F.smooth_l1_loss": nets.loss("reduction", "beta"),
    "F.huber_loss": nets.loss("reduction", "beta", "weight"),
    "F.kl_div": nets.loss("reduction", "log_target"),
    "F.binary_cross_entropy": nets.loss("weight", "reduction"),
    "F.binary_cross_entropy_with_logits": nets.loss(
        "weight", "reduction", "pos_weight"
    ),
    "F.soft_margin_loss": nets.loss("reduction"),
    **named("F.mse_loss F.l1_loss", nets.loss("reduction", "weight")),
    **named("F.nll_loss F.cross_entropy", nets.classes),
    **named(
        "F.relu F.relu6 F.silu F.mish F.selu F.hardswish F.hardsigmoid "
        "F.softsign F.tanhshrink F.leaky_relu F.elu softplus log_sigmoid",
        floated,
    ),
    "F.celu": lambda x, alpha, inplace: only(of_floats(x), alpha),
    "F.hardtanh": lambda x, low, high, _: only(of_floats(x), low < high),
    **named("F.dropout F.alpha_dropout", nets.dropped()),
    "F.dropout1d": nets.dropped(3, 3),
    **named("F.dropout2d F.dropout3d F.feature_alpha_dropout", nets.dropped(3)),
    **named(
        "F.softmax F.log_softmax F.softmin softmax.int log_softmax.int",
        rules.shared,
    ),
    "F.layer_norm": lambda *given: nets.layer_norm(*given[:-1]),
    **named(
        "rms_norm F.rms_norm", lambda x, *one: nets.layer_norm(x, *one[:-1])
    ),
    "F.group_norm": lambda *given: nets.group_norm(*given[:-1]),
    "F.interpolate": lambda *given: only(
        nets.interpolate(*given[:-1]), not given[-1]
    ),
    "scaled_dot_product_attention": nets.attention,
    # In place, and drawn.
    **named("fill_", shapes.filled),
    "zero_": alike,
    "copy_": shapes.written,
    "uniform_": lambda x, low, high: only(of_floats(x), low <= high),
    "normal_": lambda x, mean, std: only(of_floats(x), std >= 0),
    "exponential_": lambda x, by: only(of_floats(x), by > 0),
    "softshrink": lambda x, by: only(of_floats(x), by >= 0),
    "threshold": floated,
    "random_": alike,
    "random_.to": lambda x, to: only(alike(x), to > 0, x.dtype.category > 0),
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
