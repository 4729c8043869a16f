"""A stand-in for torch.nn: its layers, with their parameters and rules."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Final

from .. import _nets as nets
from .._functions import LISTED, as_default, fit, no_rule, strictly
from .._rules import need, of_floats, refuse, same
from .._shapes import flatten, unflatten
from .._tensor import AnyValue, Tensor, bool_, int64
from . import functional as F
from .modules import Module, Parameter


def weight(*shape: int) -> Parameter:
    """A parameter of a shape."""
    return Parameter(Tensor(shape))


class Layer(Module):
    """A layer of torch.nn; settings that it does not have make it unknown."""

    def __init_subclass__(cls) -> None:
        if cls.__module__ != __name__:
            return  # a class of the reader
        for name, made in (("__init__", _begun), ("forward", _run)):
            own = getattr(cls, name, None)
            if own:
                raw = getattr(own, "__wrapped__", own)
                setattr(cls, name, made(raw, f"torch.nn.{cls.__name__}"))


def _begun(begin: Callable[..., None], path: str) -> Callable[..., None]:
    signature = inspect.signature(begin)

    @wraps(begin)
    def __init__(self: Layer, *args: AnyValue, **kwargs: AnyValue) -> None:
        Module.__init__(self)
        try:
            fit(signature, (self, *args), kwargs)
            given = signature.bind(self, *args, **kwargs)
            given.apply_defaults()
            settings = {**given.arguments, **given.kwargs}
            for name in {*settings} - {"self", "bias", "device", "settings"}:
                setattr(self, name, settings[name])
            begin(self, *args, **kwargs)
        except Exception:
            Module.__init__(self)
            self.is_unknown = True

    return __init__


def _run(forward: Callable[..., AnyValue], path: str) -> AnyValue:
    rule = strictly(forward, path)

    @wraps(forward)
    def run(self: Layer, *args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        if is_unknown(self):
            return no_rule(path)()
        return rule(self, *args, **kwargs)

    return run


def is_unknown(module: Module) -> bool:
    """Whether a module's parameters are not known."""
    return "is_unknown" in vars(module)


def unknown(name: str) -> type[Module]:
    """A class of torch.nn that can be traced, and has no rule for shapes."""

    def __init__(self: Module, *args: AnyValue, **more: AnyValue) -> None:
        Module.__init__(self)
        self.is_unknown = True

    forward = staticmethod(no_rule(f"torch.nn.{name}"))
    return type(name, (Module,), {"__init__": __init__, "forward": forward})


class Linear(Layer):
    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: AnyValue | None = None,
    ) -> None:
        self.weight = weight(out_features, in_features)
        self.bias = weight(out_features) if bias else None

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)  # type: ignore[no-any-return]


class _Conv(Layer):
    count = 2

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: AnyValue,
        stride: AnyValue = 1,
        padding: AnyValue = 0,
        dilation: AnyValue = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: AnyValue | None = None,
    ) -> None:
        need(in_channels % groups == 0, out_channels % groups == 0)
        kernel = nets.each(kernel_size, self.count)
        self.weight = weight(out_channels, in_channels // groups, *kernel)
        self.bias = weight(out_channels) if bias else None

    def forward(self, input: Tensor) -> Tensor:
        need(self.padding_mode == "zeros")
        return getattr(F, f"conv{self.count}d")(  # type: ignore[no-any-return]
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self.dilation,
            self.groups,
        )


class _ConvTranspose(Layer):
    count = 2

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: AnyValue,
        stride: AnyValue = 1,
        padding: AnyValue = 0,
        output_padding: AnyValue = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: AnyValue = 1,
        device: AnyValue | None = None,
    ) -> None:
        need(in_channels % groups == 0, out_channels % groups == 0)
        kernel = nets.each(kernel_size, self.count)
        self.weight = weight(in_channels, out_channels // groups, *kernel)
        self.bias = weight(out_channels) if bias else None

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, f"conv_transpose{self.count}d")(  # type: ignore[no-any-return]
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self.output_padding,
            self.groups,
            self.dilation,
        )


class Embedding(Layer):
    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        device: AnyValue | None = None,
    ) -> None:
        self.weight = weight(num_embeddings, embedding_dim)

    def forward(self, input: Tensor) -> Tensor:
        return nets.embedding(input, self.weight)


class LayerNorm(Layer):
    def __init__(
        self,
        normalized_shape: AnyValue,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: AnyValue | None = None,
    ) -> None:
        whole = normalized_shape
        self.whole = (whole,) if isinstance(whole, int) else (*whole,)
        self.weight = weight(*self.whole) if elementwise_affine else None
        both = elementwise_affine and bias
        self.bias = weight(*self.whole) if both else None

    def forward(self, input: Tensor) -> Tensor:
        return nets.layer_norm(input, self.whole, self.weight, self.bias)


class RMSNorm(LayerNorm):
    def __init__(
        self,
        normalized_shape: AnyValue,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: AnyValue | None = None,
    ) -> None:
        whole = normalized_shape
        self.whole = (whole,) if isinstance(whole, int) else (*whole,)
        self.weight = weight(*self.whole) if elementwise_affine else None
        self.bias = None


class GroupNorm(Layer):
    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: AnyValue | None = None,
    ) -> None:
        need(num_channels % num_groups == 0)
        self.weight = weight(num_channels) if affine else None
        self.bias = weight(num_channels) if affine else None

    def forward(self, input: Tensor) -> Tensor:
        return nets.group_norm(input, self.num_groups, self.weight, self.bias)


class _Norm(Layer):
    dims: tuple[int, ...] = (4,)

    def _hold(self, features: int, affine: bool, track: bool) -> None:
        self.weight = weight(features) if affine else None
        self.bias = weight(features) if affine else None
        if track:
            self.register_buffer("running_mean", Tensor([features]))
            self.register_buffer("running_var", Tensor([features]))
            self.register_buffer("num_batches_tracked", Tensor([], int64))
        else:
            self.running_mean = self.running_var = None

    def _fits(self, input: Tensor) -> None:
        if input.ndim not in self.dims:
            refuse(f"expects {self.dims} dimensions, and gets {input.ndim}")


class _BatchNorm(_Norm):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: AnyValue | None = None,
    ) -> None:
        self._hold(num_features, affine, track_running_stats)

    def forward(self, input: Tensor) -> Tensor:
        self._fits(input)
        mean, var = self.running_mean, self.running_var
        training = self.training or mean is None
        need(input.shape[1] == self.num_features or mean is not None)
        return nets.batch_norm(
            *(input, mean, var, self.weight, self.bias, training),
            eps=self.eps,
        )


class _InstanceNorm(_Norm):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: AnyValue | None = None,
    ) -> None:
        self._hold(num_features, affine, track_running_stats)

    def forward(self, input: Tensor) -> Tensor:
        self._fits(input)
        count = max(self.dims) - 2
        need(input.shape[-count - 1] == self.num_features, input.numel())
        need(any(size > 1 for size in input.shape[-count:]))
        return of_floats(input)


class Flatten(Layer):
    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None: ...

    def forward(self, input: Tensor) -> Tensor:
        return flatten(input, self.start_dim, self.end_dim)


class Unflatten(Layer):
    def __init__(self, dim: int, unflattened_size: AnyValue) -> None: ...

    def forward(self, input: Tensor) -> Tensor:
        return unflatten(input, self.dim, self.unflattened_size)


class PReLU(Layer):
    def __init__(self, num_parameters: int = 1, init: float = 0.25) -> None:
        self.weight = weight(num_parameters)

    def forward(self, input: Tensor) -> Tensor:
        need(self.num_parameters in (1, *input.shape[1:2]))
        need(input.dtype is self.weight.dtype)
        return of_floats(input)


class Identity(Layer):
    def __init__(self, *settings: AnyValue) -> None: ...

    def forward(self, input: AnyValue) -> AnyValue:
        return input


class MultiheadAttention(Layer):
    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        *,
        batch_first: bool = False,
        device: AnyValue | None = None,
    ) -> None:
        need(num_heads > 0, embed_dim % num_heads == 0, 0 <= dropout <= 1)
        self.in_proj_weight = weight(3 * embed_dim, embed_dim)
        self.in_proj_bias = weight(3 * embed_dim) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
    ) -> tuple[Tensor, Tensor | None]:
        need(query.ndim in (2, 3), query.ndim == key.ndim, query.numel())
        need(key.shape == value.shape, key.numel())
        need(same(query, key, value) is self.in_proj_weight.dtype)
        if not query.shape[-1] == key.shape[-1] == self.embed_dim:
            refuse(f"expects vectors of {self.embed_dim}")
        at = 1 if self.batch_first and query.ndim == 3 else 0
        batch = [query.shape[1 - at]] if query.ndim == 3 else []
        need(not batch or key.shape[1 - at] == batch[0])
        sizes = [query.shape[at], key.shape[at]]
        for mask, wanted in (
            (key_padding_mask, [*batch, sizes[1]]),
            (attn_mask, sizes),
        ):
            need(
                mask is None
                or (mask.dtype is bool_ and [*mask.shape] == wanted)
            )
        result = of_floats(query)
        result.packed = False
        if not need_weights:
            return result, None
        heads = [] if average_attn_weights else [self.num_heads]
        return result, Tensor([*batch, *heads, *sizes], query.dtype)


class _Recurrent(Layer):
    gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: AnyValue | None = None,
    ) -> None:
        need(hidden_size > 0, num_layers > 0, 0 <= dropout <= 1)
        self.both = 2 if bidirectional else 1
        wide = self.gates * hidden_size
        for at in range(num_layers):
            inner = input_size if at == 0 else hidden_size * self.both
            for end in ("", "_reverse")[: self.both]:
                own = f"l{at}{end}"
                setattr(self, f"weight_ih_{own}", weight(wide, inner))
                setattr(self, f"weight_hh_{own}", weight(wide, hidden_size))
                for name in ("bias_ih_", "bias_hh_") * bias:
                    setattr(self, name + own, weight(wide))

    def forward(self, input: Tensor, hx: AnyValue = None) -> AnyValue:
        need(input.ndim in (2, 3), input.numel())
        need(input.dtype is self.weight_ih_l0.dtype)
        if input.shape[-1] != self.input_size:
            refuse(f"expects {self.input_size}, and gets {input.shape[-1]}")
        batch = [*input.shape[:-1]]
        batch.pop(1 if self.batch_first and len(batch) == 2 else 0)
        whole = [self.num_layers * self.both, *batch, self.hidden_size]
        two = self.gates == 4
        given = [] if hx is None else [*hx] if two else [hx]
        need(hx is None or len(given) == 1 + two)
        for one in given:
            need([*one.shape] == whole, one.dtype is input.dtype)
        wide = self.hidden_size * self.both
        output = Tensor([*input.shape[:-1], wide], input.dtype)
        output.packed = not self.batch_first
        states = tuple(Tensor(whole, input.dtype) for _ in range(1 + two))
        return output, states if two else states[0]


class LSTM(_Recurrent):
    gates = 4


class GRU(_Recurrent):
    gates = 3


class RNN(_Recurrent):
    gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
    ) -> None:
        begin: AnyValue = super().__init__
        begin(
            *(input_size, hidden_size, num_layers, bias, batch_first),
            bidirectional=bidirectional,
        )


class TransformerEncoderLayer(Layer):
    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
    ) -> None:
        need(activation in ("relu", "gelu"), 0 <= dropout <= 1)
        self.self_attn = MultiheadAttention(
            d_model, nhead, batch_first=batch_first
        )
        self.linear1 = Linear(d_model, dim_feedforward)
        self.dropout = LAYERS["Dropout"](dropout)
        self.linear2 = Linear(dim_feedforward, d_model)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, src: Tensor) -> Tensor:
        need(not any(map(is_unknown, self.modules())))
        found: Tensor = self.self_attn(src, src, src)[0]
        return found


# --- layers that call a function with their settings ------------------------


def _window(
    kernel_size: AnyValue,
    stride: AnyValue = None,
    padding: AnyValue = 0,
    dilation: AnyValue = 1,
    return_indices: bool = False,
    ceil_mode: bool = False,
) -> None: ...


def _mean(
    kernel_size: AnyValue,
    stride: AnyValue = None,
    padding: AnyValue = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> None: ...


def _upsample(
    size: AnyValue | None = None,
    scale_factor: AnyValue | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> None: ...


SIMPLE: Final[dict[str, tuple[str, Callable[..., object]]]] = {
    **{
        name: (name.lower(), lambda inplace=False: 0)
        for name in "ReLU ReLU6 SiLU Mish Hardswish Hardsigmoid SELU".split()
    },
    **{
        name: (name.lower(), lambda: 0)
        for name in "Sigmoid Tanh Softsign LogSigmoid Tanhshrink".split()
    },
    **{
        name: (function, lambda p=0.5, inplace=False: 0)
        for name, function in (
            *(("Dropout", "dropout"), ("AlphaDropout", "alpha_dropout")),
            ("FeatureAlphaDropout", "feature_alpha_dropout"),
            *((f"Dropout{n}d", f"dropout{n}d") for n in (1, 2, 3)),
        )
    },
    "GELU": ("gelu", lambda approximate="none": 0),
    "LeakyReLU": ("leaky_relu", lambda negative_slope=0.01, inplace=False: 0),
    "ELU": ("elu", lambda alpha=1.0, inplace=False: 0),
    "CELU": ("celu", lambda alpha=1.0, inplace=False: 0),
    "Hardtanh": (
        "hardtanh",
        lambda min_val=-1.0, max_val=1.0, inplace=False: 0,
    ),
    "Softplus": ("softplus", lambda beta=1.0, threshold=20.0: 0),
    "GLU": ("glu", lambda dim=-1: 0),
    **{
        name: (function, lambda dim=None: 0)
        for name, function in (
            ("Softmax", "softmax"),
            ("LogSoftmax", "log_softmax"),
            ("Softmin", "softmin"),
        )
    },
    **{f"MaxPool{n}d": (f"max_pool{n}d", _window) for n in (1, 2, 3)},
    **{f"AvgPool{n}d": (f"avg_pool{n}d", _mean) for n in (1, 2, 3)},
    **{
        f"AdaptiveAvgPool{n}d": (
            f"adaptive_avg_pool{n}d",
            lambda output_size: 0,
        )
        for n in (1, 2, 3)
    },
    "Upsample": ("interpolate", _upsample),
    "PixelShuffle": ("pixel_shuffle", lambda upscale_factor: 0),
    "CosineSimilarity": ("cosine_similarity", lambda dim=1, eps=1e-8: 0),
    **{
        name: (function, lambda *, reduction="mean": 0)
        for name, function in (
            ("MSELoss", "mse_loss"),
            ("L1Loss", "l1_loss"),
            ("BCEWithLogitsLoss", "binary_cross_entropy_with_logits"),
        )
    },
    "NLLLoss": ("nll_loss", lambda *, ignore_index=-100, reduction="mean": 0),
    "CrossEntropyLoss": (
        "cross_entropy",
        lambda *, ignore_index=-100, reduction="mean", label_smoothing=0.0: 0,
    ),
}
"""The function of each, and a function with its settings."""


def simple(name: str) -> type[Layer]:
    """The class of a layer that calls a function with its settings."""
    function, settings = SIMPLE[name]
    signature = inspect.signature(settings)

    def __init__(self: Layer, *args: AnyValue, **kwargs: AnyValue) -> None:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        self.given = {**given.arguments}
        for key, value in self.given.items():
            setattr(self, key, value)

    def forward(self: Layer, *inputs: Tensor) -> AnyValue:
        changed = {
            key: value
            for key, value in self.given.items()
            if not as_default(value, signature.parameters[key].default)
        }
        need(len(inputs) == 1 + ("Loss" in name or name.startswith("Cosine")))
        return F.rule_of(function)(*inputs, **changed)

    own = {"__module__": __name__, "__init__": __init__, "forward": forward}
    return type(name, (Layer,), own)


def _counted(name: str, base: type[Layer], **own: AnyValue) -> type[Layer]:
    return type(name, (base,), {"__module__": __name__, **own})


_DIMS: Final = {1: (2, 3), 2: (4,), 3: (5,)}
LAYERS: Final[dict[str, AnyValue]] = {
    **{
        one.__name__: one
        for one in (
            *(Linear, Embedding, LayerNorm, RMSNorm, GroupNorm, Flatten),
            *(Unflatten, PReLU, Identity, MultiheadAttention, LSTM, GRU, RNN),
            TransformerEncoderLayer,
        )
    },
    **{name: simple(name) for name in SIMPLE},
    **{
        f"{name}{n}d": _counted(f"{name}{n}d", base, **own)
        for n in (1, 2, 3)
        for name, base, own in (
            ("Conv", _Conv, {"count": n}),
            ("ConvTranspose", _ConvTranspose, {"count": n}),
            ("BatchNorm", _BatchNorm, {"dims": _DIMS[n]}),
            ("InstanceNorm", _InstanceNorm, {"dims": (n + 1, n + 2)}),
        )
    },
}
"""The layers whose parameters are known, by name."""


for _name, _kind in LAYERS.items():
    _kind.__module__ = LISTED["modules"][_name]
