"""Extra: effects that torch's own schemas do not tell of.

`function_effects` reads what it can from schemas and tags.  The tables here
hold the rest: functions without a schema, operators whose schemas do not
mention a write, random draws that depend on a flag, and modules of torch.nn.

A missing entry in a table of effects removes a node that was needed, and so
does a wrong one in a table of what is pure or new.  Against the first,
tests/library/test_effects.py looks through torch and names what a new release
has and no table judges: functions that draw, operators with running statistics,
methods of tensors, functions of `operator`, modules with a state.

torch.fx: node.py, _side_effectful_functions; it holds asserts, what begins and
ends modes of autograd and autocast, profiler ranges and `operator.setitem`. It
lacks `print`, `next`, `setattr`, `torch.manual_seed` and `torch.save`, so a
`print` that is recorded is removed as dead.
"""

from __future__ import annotations

import builtins
import cmath
import math
import operator
from collections.abc import Callable
from types import BuiltinFunctionType
from typing import Final, NamedTuple

import torch
from torch import nn
from torch.autograd import forward_ad
from torch.nn.modules.lazy import LazyModuleMixin

from ...torch_private.modules import (
    NESTING_LEVELS,
    DropoutNd,
    NormBase,
    SpectralNorm,
)
from ...use_def.values import AnyValue

CALLED_FOR_EFFECT: Final[tuple[Callable[..., AnyValue], ...]] = (
    builtins.delattr,
    builtins.exec,
    builtins.input,
    builtins.next,
    builtins.print,
    builtins.setattr,
    torch.autograd.backward,
    torch.random.manual_seed,  # torch itself may wrap torch.manual_seed
    torch.save,
    torch.seed,
    torch.set_default_dtype,
    torch.set_grad_enabled,
    torch.set_rng_state,
    *(
        function
        for module in (*NESTING_LEVELS, forward_ad)
        for name, function in vars(module).items()
        if name.endswith(("_nesting", "_dual_level"))
    ),
)
"""Functions without a schema whose calls change something, besides those that
torch.fx registers, such as `torch._assert`.

Users add to them with `@has_side_effect`.  Graphs that torch has captured hold
those that enter and leave a level of `vmap`, `jvp` or forward-mode
differentiation, which are found by the ends of their names.
"""

IN_PLACE_OPERATORS: Final = frozenset(
    f"i{name}"
    for name in "add and concat floordiv lshift matmul mod mul or pow rshift "
    "sub truediv xor".split()
) | {"setitem", "delitem"}
"""Functions of `operator` that write into their first argument, as `iadd` of
`x += 1` does into a tensor or a list, which it returns."""

OF_PYTHON: Final[list[tuple[str, object]]] = [
    (f"{module.__name__}.{name.strip('_')}", function)
    for module in (cmath, math, operator)
    for name, function in vars(module).items()
    if isinstance(function, BuiltinFunctionType) and name.strip("_") != "call"
]
"""The functions of these modules, each with its name; `operator.call` would run
what it is given."""

PURE_BUILTINS: Final = (
    "abs ascii bin bool callable chr complex divmod enumerate filter float "
    "format getattr hasattr hash hex id int isinstance issubclass iter len "
    "map object oct ord pow range repr reversed round slice str type zip"
).split()
"""Builtins that return a value and do nothing else.  `list`, `sum` and others
that iterate are not among them: `list(map(print, x))` prints."""

ITERATING: Final = frozenset(
    "contains countOf dist fsum indexOf prod sumprod".split()
)
"""Functions of `operator` and `math` that iterate over an argument."""

PURE_TORCH: Final[tuple[object, ...]] = tuple(
    getattr(torch, name)
    for name in "Size as_tensor asarray device finfo from_numpy "
    "get_default_dtype iinfo is_grad_enabled is_tensor sym_float sym_int "
    "sym_ite sym_max sym_min sym_not tensor".split()
)
"""Functions of torch that no schema speaks for."""

RETURNS_NEW_MEMORY: Final = frozenset(
    (
        # elementwise
        "abs acos acosh add addcdiv addcmul angle asin asinh atan atan2 atanh "
        "bitwise_and bitwise_left_shift bitwise_not bitwise_or "
        "bitwise_right_shift bitwise_xor ceil celu clamp clamp_max clamp_min "
        "copysign cos cosh deg2rad digamma div elu eq erf erfc erfinv exp exp2 "
        "expm1 floor floor_divide fmax fmin fmod frac ge gelu glu gt "
        "hardshrink hardsigmoid hardswish hardtanh heaviside hypot isfinite "
        "isinf isnan le leaky_relu lerp lgamma log log10 log1p log2 "
        "logaddexp logical_and logical_not logical_or logical_xor "
        "logit lt masked_fill maximum minimum mish mul nan_to_num "
        "ne neg pow prelu rad2deg reciprocal relu relu6 remainder round rsqrt "
        "rsub selu sgn sigmoid sign signbit silu sin sinc sinh softplus "
        "softshrink sqrt square sub tan tanh threshold true_divide trunc "
        "where xlogy "
        # reductions
        "all amax amin any argmax argmin argsort count_nonzero cummax cummin "
        "cumprod cumsum log_softmax logsumexp max mean median min nansum "
        "nonzero prod softmax sort std sum topk unique var "
        # linear algebra, networks
        "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d "
        "adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d addbmm "
        "addmm addmv addr avg_pool1d avg_pool2d avg_pool3d baddbmm batch_norm "
        "bilinear bmm conv1d conv2d conv3d conv_transpose1d conv_transpose2d "
        "conv_transpose3d convolution dot embedding group_norm instance_norm "
        "layer_norm linear matmul max_pool1d max_pool2d max_pool3d "
        "mm mv native_batch_norm native_group_norm native_layer_norm one_hot "
        "outer rms_norm "
        # data movement
        "cat clone copy fill flip gather index_add index_copy index_fill "
        "index_put index_select masked_scatter masked_select roll scatter "
        "scatter_add stack take tril triu zero "
        # new tensors
        "arange bernoulli empty empty_like eye full full_like linspace ones "
        "ones_like rand rand_like randint randn randn_like randperm zeros "
        "zeros_like "
        # numbers, which are not memory
        "dim is_complex is_contiguous is_floating_point item numel size stride"
    ).split()
)
"""Operators of aten, methods and functions of torch.nn.functional whose result
shares no memory with anything, and whose variant with `_` at its end writes
into its first argument only.  A name gets in here by observation, not by its
schema (`type_as` and `atleast_1d` declare no alias, and return their input):
tests/reliability/effects.py runs them all."""

FRESH_OPERATORS: Final = frozenset(
    "abs add and_ eq floordiv ge gt inv invert le lshift lt matmul mod mul ne "
    "neg or_ pow rshift sub truediv xor".split()
)
"""Functions of `operator` that do the same if an operand is a tensor."""

PLAIN_ATTRIBUTES: Final = frozenset("device dtype layout ndim shape".split())
"""Attributes of tensors that are not memory."""

FRESH_MODULES: Final[tuple[type[nn.Module], ...]] = (
    *(nn.Conv1d, nn.Conv2d, nn.Conv3d),
    *(nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d),
    NormBase,
    *(nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d),
    *(nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d),
    *(nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d),
    *(nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d),
    *(nn.Bilinear, nn.Embedding, nn.Linear, nn.PReLU),
    *(nn.CELU, nn.ELU, nn.GELU, nn.GLU, nn.Hardsigmoid, nn.Hardswish),
    *(nn.Hardtanh, nn.LeakyReLU, nn.LogSigmoid, nn.Mish, nn.ReLU, nn.SELU),
    *(nn.SiLU, nn.Sigmoid, nn.Softplus, nn.Softshrink, nn.Tanh, nn.Threshold),
    *(nn.GroupNorm, nn.LayerNorm, nn.RMSNorm),
    *(nn.LogSoftmax, nn.Softmax, nn.Upsample),
)
"""Modules that return one new tensor, or with `inplace=True` their input; a
pool only without `return_indices`.  They are found by observation, too."""

EFFECTFUL_OPERATORS: Final = frozenset(
    "_c10d_functional::batch_p2p_ops _c10d_functional::irecv "
    "_c10d_functional::isend _c10d_functional::wait_tensor ao::wait_tensor "
    "higher_order::triton_kernel_wrapper_mutation "
    "inductor::accumulate_grad_".split()
)
"""Operators that are called for their effect, though they return something
and their schema declares no write.

By name, because to ask for the object would load its library.
"""

DRAWS_IF_ASKED: Final = frozenset(
    "alpha_dropout dropout feature_alpha_dropout feature_dropout rrelu "
    "scaled_dot_product_attention".split()
)
"""Operators of aten that draw random numbers only if all `DRAW_FLAGS` that
they have are set; else each dropout of a model in evaluation would count as
impure."""

FUNCTIONAL_DRAWS: Final = frozenset(
    "alpha_dropout dropout dropout1d dropout2d dropout3d "
    "feature_alpha_dropout fractional_max_pool2d "
    "fractional_max_pool2d_with_indices fractional_max_pool3d "
    "fractional_max_pool3d_with_indices gumbel_softmax "
    "multi_head_attention_forward rrelu".split()
)
"""The same for functions of torch.nn.functional, which have no tags; one that
has no such flag draws in each call."""

DRAW_FLAGS: Final = ("p", "dropout_p", "train", "training")
"""Parameters without which a dropout does not draw."""

UPDATES_STATISTICS: Final = frozenset(
    "_batch_norm_impl_index batch_norm batch_norm_gather_stats "
    "batch_norm_gather_stats_with_counts batch_norm_update_stats "
    "cudnn_batch_norm instance_norm miopen_batch_norm "
    "native_batch_norm".split()
)
"""Functions that write into `running_mean` and `running_var`, if all
`STATISTICS_FLAGS` that they have are set.  No schema tells of it."""

STATISTICS_FLAGS: Final = ("running_mean", "training", "use_input_stats")
"""Parameters without which a batch norm does not update its statistics."""

FUNCTIONAL_MODULES: Final = ("torch.functional", "torch.nn.functional")
"""Modules whose functions have no effects but by their flags."""

FLAGS: Final = {
    "inplace": "`inplace=True` writes into the input",
    "max_norm": "`max_norm=` renormalises the weight in place",
    "out": "writes into what `out=` names",
}
"""Parameters that, set, make a function write into something."""

IN_PLACE_METHODS: Final = frozenset(
    f"__{name}__"
    for name in (
        *IN_PLACE_OPERATORS,
        *("idiv", "set", "delete", "setattr", "delattr", "setstate"),
    )
) | frozenset(
    # of tensors
    "backward module_load register_hook register_post_accumulate_grad_hook "
    # of containers
    "append appendleft clear discard extend extendleft insert move_to_end pop "
    "popitem popleft remove reverse rotate setdefault update".split()
)
"""Methods of tensors and of Python's containers that change their object.

The object of a call_method node has no type.  `append` is not a method of
tensors, so it is a list's.
"""

PURE_METHODS: Final = frozenset(
    "as_subclass bfloat16 bool byte cdouble cfloat char const_data_ptr "
    "data_ptr dim_order double float half int ipu is_shared long lu mtia "
    "ndimension nelement new new_tensor numpy short storage storage_type "
    "to_sparse_coo tolist type unique untyped_storage xpu".split()
)
"""Methods of tensors that no schema speaks for."""


class ModuleEffect(NamedTuple):
    """What modules of some classes do when `applies` says so.

    It is asked of the instance, as that is when a pass asks; a class means all
    below it, so that `NormBase` is each batch norm and instance norm.

    torch.fx: node.py, Node.is_impure; a module is impure only if it has an
    attribute `_is_impure` that is true, so a BatchNorm in training whose value
    is unused is removed.
    """

    cls: type | tuple[type, ...]
    applies: Callable[[AnyValue], bool]
    what: str


_DRAWS: Final = "draws from the random state"
_DRAWS_IN_TRAINING: Final = f"{_DRAWS}: it is in training, with dropout > 0"

MODULE_EFFECTS: Final = (
    ModuleEffect(
        LazyModuleMixin,
        lambda m: m.has_uninitialized_params(),
        "makes its parameters at the first call",
    ),
    ModuleEffect(
        DropoutNd,
        lambda m: m.training and m.p > 0,
        f"{_DRAWS}: it is in training, with p > 0",
    ),
    ModuleEffect(
        nn.RNNBase,
        lambda m: m.training and m.dropout > 0 and m.num_layers > 1,
        _DRAWS_IN_TRAINING,
    ),
    ModuleEffect(
        nn.MultiheadAttention,
        lambda m: m.training and m.dropout > 0,
        _DRAWS_IN_TRAINING,
    ),
    ModuleEffect(
        nn.RReLU, lambda m: m.training, f"{_DRAWS}: it is in training"
    ),
    ModuleEffect(
        (nn.FractionalMaxPool2d, nn.FractionalMaxPool3d),
        lambda m: True,
        _DRAWS,
    ),
    ModuleEffect(
        NormBase,
        lambda m: m.training and m.track_running_stats,
        "updates running_mean and running_var: it is in training",
    ),
    ModuleEffect(
        SpectralNorm,
        lambda m: m.training,
        "updates its singular vectors: it is in training",
    ),
    ModuleEffect(
        (nn.Embedding, nn.EmbeddingBag),
        lambda m: m.max_norm is not None,
        "renormalises its weight in place: max_norm is set",
    ),
    ModuleEffect(
        nn.Module,
        # Dropout works in place only when it draws, which is above.
        lambda m: getattr(m, "inplace", False) and not hasattr(m, "p"),
        "writes into its input: inplace=True",
    ),
)
"""The modules of torch.nn that change something, and when."""
