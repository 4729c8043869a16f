"""Stage 02, use-def: effects that torch's own schemas do not tell of.

`function_effects` reads what it can from schemas and tags.  The tables here
hold the rest: functions without a schema, operators whose schemas do not
mention a write, random draws that depend on a flag, and modules of torch.nn.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Final, NamedTuple

import torch
from torch import _assert, _assert_async, nn
from torch._C import _set_grad_enabled
from torch.amp.autocast_mode import _enter_autocast, _exit_autocast
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.utils.parametrizations import _SpectralNorm

from ..usedef.values import Value

CALLED_FOR_EFFECT: Final[tuple[Callable[..., Value], ...]] = (
    builtins.delattr,
    builtins.exec,
    builtins.input,
    builtins.next,
    builtins.print,
    builtins.setattr,
    _assert,
    _assert_async,
    _enter_autocast,
    _exit_autocast,
    _set_grad_enabled,
    torch.autograd.backward,
    torch.manual_seed,
    torch.save,
    torch.seed,
    torch.set_default_dtype,
    torch.set_grad_enabled,
    torch.set_rng_state,
)
"""Functions without a schema whose calls change something."""

IN_PLACE_OPERATORS: Final = frozenset(
    f"i{name}"
    for name in "add and concat floordiv lshift matmul mod mul or pow rshift "
    "sub truediv xor".split()
) | {"setitem", "delitem"}
"""Functions of `operator` that write into their first argument."""

PURE_BUILTINS: Final = (
    "abs all any ascii bin bool bytes callable chr complex dict divmod "
    "enumerate filter float format frozenset getattr hasattr hash hex id int "
    "isinstance issubclass iter len list map max min object oct ord pow range "
    "repr reversed round set slice sorted str sum tuple type zip"
).split()
"""Builtins that return a value and do nothing else.  (An iterator among the
arguments is taken for a value too, though `list` or `sum` would exhaust it.)"""

PURE_TORCH: Final[tuple[object, ...]] = (
    torch.Size,
    torch.as_tensor,
    torch.asarray,
    torch.device,
    torch.finfo,
    torch.from_numpy,
    torch.get_default_dtype,
    torch.iinfo,
    torch.is_grad_enabled,
    torch.is_tensor,
    torch.sym_float,
    torch.sym_int,
    torch.sym_ite,
    torch.sym_max,
    torch.sym_min,
    torch.sym_not,
    torch.tensor,
)
"""Functions of torch that no schema speaks for."""

EFFECTFUL_OPERATORS: Final = frozenset(
    (
        "_c10d_functional::batch_p2p_ops",
        "_c10d_functional::irecv",
        "_c10d_functional::isend",
        "_c10d_functional::wait_tensor",
        "ao::wait_tensor",
        "aten::_assert_async",
        "aten::_assert_scalar",
        "aten::_assert_tensor_metadata",
        "aten::sym_constrain_range",
        "aten::sym_constrain_range_for_size",
        "fsdp::copy_",
        "higher_order::triton_kernel_wrapper_mutation",
        "inductor::accumulate_grad_",
        "inductor::resize_storage_bytes_",
        "prims::_sink_tokens",
        "profiler::_record_function_enter",
        "profiler::_record_function_enter_new",
        "profiler::_record_function_exit",
        "streams::fork",
        "streams::join",
        "streams::record_event",
        "streams::record_stream",
        "streams::sync_dealloc",
        "streams::synchronize_device",
        "streams::synchronize_event",
        "streams::synchronize_stream",
        "streams::wait_event",
        "streams::wait_stream",
    )
)
"""Operators that are called for their effect, though no schema says so."""

DRAWS_IF_ASKED: Final = frozenset(
    "alpha_dropout dropout feature_alpha_dropout feature_dropout rrelu "
    "scaled_dot_product_attention".split()
)
"""Operators of aten that draw random numbers only if all `DRAW_FLAGS` that
they have are set."""

FUNCTIONAL_DRAWS: Final = frozenset(
    "alpha_dropout dropout dropout1d dropout2d dropout3d "
    "feature_alpha_dropout fractional_max_pool2d "
    "fractional_max_pool2d_with_indices fractional_max_pool3d "
    "fractional_max_pool3d_with_indices gumbel_softmax "
    "multi_head_attention_forward rrelu".split()
)
"""The same for functions of torch.nn.functional, which have no tags."""

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

_CONTAINERS_CHANGE: Final = (
    "append appendleft clear discard extend extendleft insert move_to_end pop "
    "popitem popleft remove reverse rotate setdefault update"
).split()

IN_PLACE_METHODS: Final = frozenset(
    (
        *(f"__{name}__" for name in IN_PLACE_OPERATORS),
        *_CONTAINERS_CHANGE,
        "__delattr__",
        "__delete__",
        "__idiv__",
        "__set__",
        "__setattr__",
        "__setstate__",
        "backward",
        "module_load",
        "register_hook",
        "register_post_accumulate_grad_hook",
    )
)
"""Methods of tensors and of Python's containers that change their object."""

PURE_METHODS: Final = frozenset(
    "as_subclass bfloat16 bool byte cdouble cfloat char const_data_ptr "
    "data_ptr dim_order double float half int ipu is_shared long lu mtia "
    "ndimension nelement new new_tensor numpy short storage storage_type "
    "to_sparse_coo tolist type unique untyped_storage xpu".split()
)
"""Methods of tensors that no schema speaks for."""


class ModuleEffect(NamedTuple):
    """What modules of some classes do when `applies` says so."""

    cls: type | tuple[type, ...]
    applies: Callable[[Value], bool]
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
        _DropoutNd,
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
        _NormBase,
        lambda m: m.training and m.track_running_stats,
        "updates running_mean and running_var: it is in training",
    ),
    ModuleEffect(
        _SpectralNorm,
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
        # Dropout works in place only when it draws, which stands above.
        lambda m: getattr(m, "inplace", False) and not hasattr(m, "p"),
        "writes into its input: inplace=True",
    ),
)
"""The modules of torch.nn that change something, and when."""
