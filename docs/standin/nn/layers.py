"""A stand-in for torch.nn: its layers, with their parameters and rules.

Settings are stored, and most layers call a function with them: which, torch is
asked when the site is built.  Here are the parameters, and the other layers.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from copy import deepcopy
from functools import wraps
from types import SimpleNamespace
from typing import Final

from .. import _nets as nets
from .._forms import LISTED, fitted, forms, matters
from .._functions import guarded, no_rule
from .._rules import need, of_floats, refuse, same
from .._tensor import AnyValue, Tensor, bool_, int64, is_traced
from . import functional as F
from .modules import Module, ModuleList, Parameter


class Layer(Module):
    """A layer of torch.nn; settings that it does not have make it unknown."""

    named = ""

    def __init__(self, *args: AnyValue, **kwargs: AnyValue) -> None:
        super().__init__()
        try:
            given = settings(self.named, args, kwargs)
            begun = BEGIN[self.named](given) if self.named in BEGIN else {}
            stored = {
                k: v
                for k, v in vars(given).items()
                if k not in ("bias", "dtype", *begun)
            }
            for name, value in {**stored, **begun}.items():
                if name in begun and type(value) is Tensor:
                    self.register_buffer(name, value)
                else:
                    setattr(self, name, value)
            need(not any(map(is_unknown, self.children())))
            if given.dtype:
                need(given.dtype.is_floating_point)
                self.to(given.dtype)
        except Exception:
            super().__init__()
            self.is_unknown = True


def settings(
    name: str, args: tuple[AnyValue, ...], kwargs: dict[str, AnyValue]
) -> SimpleNamespace:
    """What a layer is made with, by name."""
    own = "RNNBase" if name in _GATES else name
    if own == "Identity":
        return SimpleNamespace(dtype=None)
    [(_, parameters)] = forms(f"nn.{own}")
    need(name != "RNN" or len(args) < 4)
    parameters = parameters[own == "RNNBase" :]
    values = fitted(parameters, args, kwargs, "", 0)
    need(values is not None)
    names = [one.name for one in parameters if matters(one)]
    fixed = {one.name: None for one in parameters if one.kind == "None?"}
    found = fixed | dict(zip(names, values or (), strict=True))
    if any(one.name == "stride" and not one.default for one in parameters):
        own = found["stride"]
        found["stride"] = found["kernel_size"] if own is None else own
    return SimpleNamespace(**{"dtype": None, **found})


def _run(forward: Callable[..., AnyValue], path: str, open_: bool) -> AnyValue:
    rule = guarded(forward, path)

    @wraps(forward)
    def run(self: Layer, *args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        traced = is_traced(*args, *kwargs.values())
        if is_unknown(self) or (traced and not open_):
            return no_rule(path)()
        return (forward if traced else rule)(self, *args, **kwargs)

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


# --- what they begin with ---------------------------------------------------

Given = SimpleNamespace
Begin = Callable[[Given], dict[str, AnyValue]]


def weight(*shape: int) -> Parameter:
    """A parameter of a shape."""
    return Parameter(Tensor(shape))


def perhaps(own: bool, *shape: int) -> Parameter | None:
    """A parameter of a shape, if the layer has it."""
    return weight(*shape) if own else None


def both(bias: bool, *shape: int) -> dict[str, AnyValue]:
    """A weight, and a bias for each of its first dimension."""
    return {"weight": weight(*shape), "bias": perhaps(bias, shape[0])}


def of_shape(given: Given) -> dict[str, AnyValue]:
    """Of layers for the last dimensions."""
    whole = given.normalized_shape
    shape = (whole,) if isinstance(whole, int) else (*whole,)
    own = given.elementwise_affine
    bias = own and getattr(given, "bias", False)
    return {
        **{"normalized_shape": shape, "weight": perhaps(own, *shape)},
        "bias": perhaps(bias, *shape),
    }


_EACH: Final = "kernel_size stride dilation output_padding padding output_size"


def of_each(n: int) -> Begin:
    """Of a layer that keeps its settings for each of so many dimensions."""
    return lambda given: {
        name: (*nets.each(value, n),)
        for name, value in vars(given).items()
        if name in _EACH.split() and not isinstance(value, str)
    }


def scaled(given: Given) -> dict[str, AnyValue]:
    """Of a layer that makes images larger."""
    by = given.scale_factor
    return {"scale_factor": float(by) if type(by) is int else by}


def upsampled(mode: str, aligned: bool | None) -> Begin:
    """Of such a layer that has one mode."""
    fixed = {"mode": mode, "align_corners": aligned}
    return lambda given: {
        **{**fixed, "recompute_scale_factor": None},
        **scaled(given),
    }


def conv(n: int, turned: bool = False) -> Begin:
    """Of a convolution of so many dimensions."""

    def begin(given: Given) -> dict[str, AnyValue]:
        ins, outs = given.in_channels, given.out_channels
        need(ins % given.groups == 0, outs % given.groups == 0)
        kernel = nets.each(given.kernel_size, n)
        first, second = (ins, outs) if turned else (outs, ins)
        return {
            **{"transposed": turned, "output_padding": (0,) * n},
            **of_each(n)(given),
            "weight": weight(first, second // given.groups, *kernel),
            "bias": perhaps(given.bias, outs),
        }

    return begin


def norm(given: Given) -> dict[str, AnyValue]:
    """Of a norm over channels, which may keep what it has seen."""
    size, seen = [given.num_features], given.track_running_stats
    biased = given.affine and given.bias
    return {
        "weight": perhaps(given.affine, *size),
        "bias": perhaps(biased, *size),
        "running_mean": Tensor(size) if seen else None,
        "running_var": Tensor(size) if seen else None,
        "num_batches_tracked": Tensor([], int64) if seen else None,
    }


def grouped(given: Given) -> dict[str, AnyValue]:
    """Of a norm over groups of channels."""
    need(given.num_channels % given.num_groups == 0)
    found = both(given.affine and given.bias, given.num_channels)
    return found if given.affine else dict.fromkeys(found)


def cell(gates: int) -> Begin:
    """Of a step of a recurrent layer."""
    return lambda given: {
        "bias": given.bias,
        "weight_ih": weight(gates * given.hidden_size, given.input_size),
        "weight_hh": weight(gates * given.hidden_size, given.hidden_size),
        "bias_ih": perhaps(given.bias, gates * given.hidden_size),
        "bias_hh": perhaps(given.bias, gates * given.hidden_size),
    }


def recurrent(named: str, gates: int) -> Begin:
    """Of a recurrent layer."""

    def begin(given: Given) -> dict[str, AnyValue]:
        size, count, bias = given.hidden_size, given.num_layers, given.bias
        need(size > 0, count > 0, 0 <= given.dropout <= 1)
        need(given.proj_size == 0)
        ends = ("", "_reverse")[: 1 + given.bidirectional]
        wide, found = gates * size, dict[str, AnyValue]()
        for at in range(count):
            inner = size * len(ends) if at else given.input_size
            for end in (f"l{at}{one}" for one in ends):
                found[f"weight_ih_{end}"] = weight(wide, inner)
                found[f"weight_hh_{end}"] = weight(wide, size)
                for name in ("bias_ih_", "bias_hh_") * bias:
                    found[name + end] = weight(wide)
        kind = getattr(given, "nonlinearity", "tanh").upper()
        found["mode"] = f"RNN_{kind}" if named == "RNN" else named
        return found | {"gates": gates, "ends": len(ends), "bias": bias}

    return begin


def attention(given: Given) -> dict[str, AnyValue]:
    """Of attention with several heads."""
    size, heads = given.embed_dim, given.num_heads
    need(heads > 0, size % heads == 0, 0 <= given.dropout <= 1)
    need(not given.add_bias_kv, not given.add_zero_attn)
    need(given.kdim in (None, size), given.vdim in (None, size))
    named = type("NonDynamicallyQuantizableLinear", (LAYERS["Linear"],), {})
    return {
        **{"head_dim": size // heads, "kdim": size, "vdim": size},
        **{"bias_k": None, "bias_v": None},
        "in_proj_weight": weight(3 * size, size),
        "in_proj_bias": perhaps(given.bias, 3 * size),
        "out_proj": named(size, size, given.bias),
    }


def encoder_layer(given: Given) -> dict[str, AnyValue]:
    """Of a layer of attention, and a small network."""
    need(given.activation in ("relu", "gelu"), 0 <= given.dropout <= 1)
    size, inner, bias = given.d_model, given.dim_feedforward, given.bias
    linear, drop, norm = (
        LAYERS[name] for name in ("Linear", "Dropout", "LayerNorm")
    )
    return {
        "self_attn": LAYERS["MultiheadAttention"](
            size, given.nhead, bias=bias, batch_first=given.batch_first
        ),
        "linear1": linear(size, inner, bias),
        "dropout": drop(given.dropout),
        "linear2": linear(inner, size, bias),
        **{f"norm{n}": norm(size, bias=bias) for n in (1, 2)},
        **{f"dropout{n}": drop(given.dropout) for n in (1, 2)},
    }


def encoder(given: Given) -> dict[str, AnyValue]:
    """Of several such layers."""
    one = given.encoder_layer
    need(type(one) is LAYERS["TransformerEncoderLayer"], given.num_layers > 0)
    need(given.norm is None or isinstance(given.norm, Layer))
    copies = [deepcopy(one) for _ in range(given.num_layers)]
    return {"layers": ModuleList(copies), "encoder_layer": False}


_GATES: Final = {"RNN": 1, "GRU": 3, "LSTM": 4}
BEGIN: Final[dict[str, Begin]] = {
    "Identity": lambda given: {},
    "Linear": lambda given: both(
        given.bias, given.out_features, given.in_features
    ),
    "Bilinear": lambda given: both(
        *(given.bias, given.out_features, given.in1_features),
        given.in2_features,
    ),
    **dict.fromkeys(
        ("Embedding", "EmbeddingBag"),
        lambda given: {
            "weight": weight(given.num_embeddings, given.embedding_dim)
        },
    ),
    **dict.fromkeys(("LayerNorm", "RMSNorm"), of_shape),
    "GroupNorm": grouped,
    "PReLU": lambda given: {"weight": weight(given.num_parameters)},
    "ReLU6": lambda given: {"min_val": 0.0, "max_val": 6.0},
    "PairwiseDistance": lambda given: {"norm": given.p},
    **{name: recurrent(name, gates) for name, gates in _GATES.items()},
    **{f"{name}Cell": cell(gates) for name, gates in _GATES.items()},
    "MultiheadAttention": attention,
    "TransformerEncoderLayer": encoder_layer,
    "TransformerEncoder": encoder,
    "Upsample": scaled,
    "UpsamplingNearest2d": upsampled("nearest", None),
    "UpsamplingBilinear2d": upsampled("bilinear", True),
}


def padded(n: int) -> Begin:
    """Of a layer that pads so many dimensions."""
    return lambda given: {
        "padding": (*nets.each(given.padding, 2 * n),),
        "value": getattr(given, "value", 0.0),
    }


_PADS: Final = "Zero Constant Reflection Replication Circular".split()
BEGIN["AvgPool1d"], BEGIN["FractionalMaxPool2d"] = of_each(1), of_each(2)
for _n in (1, 2, 3):
    BEGIN[f"MaxUnpool{_n}d"] = of_each(_n)
    BEGIN[f"Conv{_n}d"] = conv(_n)
    BEGIN[f"ConvTranspose{_n}d"] = conv(_n, turned=True)
    BEGIN[f"BatchNorm{_n}d"] = BEGIN[f"InstanceNorm{_n}d"] = norm
    BEGIN.update({f"{name}Pad{_n}d": padded(_n) for name in _PADS})


# --- what they do -----------------------------------------------------------


def convolved(self: AnyValue, input: AnyValue) -> AnyValue:
    """A convolution."""
    need(self.padding_mode == "zeros")
    return getattr(F, self.named.lower())(
        *(input, self.weight, self.bias, self.stride, self.padding),
        *(self.dilation, self.groups),
    )


def spread(
    self: AnyValue, input: AnyValue, output_size: None = None
) -> AnyValue:
    """A transposed convolution."""
    need(self.padding_mode == "zeros", output_size is None)
    name = self.named.replace("ConvT", "conv_t").lower()
    return getattr(F, name)(
        *(input, self.weight, self.bias, self.stride, self.padding),
        *(self.output_padding, self.groups, self.dilation),
    )


def batch_norm(self: AnyValue, input: Tensor) -> Tensor:
    """Of mean 0 and variance 1 over a batch."""
    _dims(self, input, {"1": (2, 3), "2": (4,), "3": (5,)})
    mean, var = self.running_mean, self.running_var
    training = self.training or mean is None
    need(input.shape[1] == self.num_features or mean is not None)
    return nets.batch_norm(
        *(input, mean, var, self.weight, self.bias, training, 0, self.eps)
    )


def _dims(self: AnyValue, input: Tensor, dims: AnyValue) -> None:
    found = dims[self.named[-2]]
    if input.ndim not in found:
        refuse(f"expects {found} dimensions, and gets {input.ndim}")


def instance_norm(self: AnyValue, input: Tensor) -> Tensor:
    """Of mean 0 and variance 1 over each channel."""
    _dims(self, input, {"1": (2, 3), "2": (3, 4), "3": (4, 5)})
    count = int(self.named[-2])
    need(input.shape[-count - 1] == self.num_features, input.numel())
    need(any(size > 1 for size in input.shape[-count:]))
    need(self.weight is None or self.weight.dtype is input.dtype)
    return of_floats(input)


def attend(
    self: AnyValue,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    average_attn_weights: bool = True,
) -> tuple[Tensor, Tensor | None]:
    """Values, mixed by how much the keys are like the queries."""
    need(query.ndim in (2, 3), query.ndim == key.ndim, query.numel())
    need(key.shape == value.shape, key.numel(), type(need_weights) is bool)
    need(same(query, key, value) is self.in_proj_weight.dtype)
    need(type(average_attn_weights) is bool)
    if not query.shape[-1] == key.shape[-1] == self.embed_dim:
        refuse(f"expects vectors of {self.embed_dim}")
    at = 1 if self.batch_first and query.ndim == 3 else 0
    batch = [query.shape[1 - at]] if query.ndim == 3 else []
    need(not batch or key.shape[1 - at] == batch[0])
    sizes = [query.shape[at], key.shape[at]]
    masks = ((key_padding_mask, [*batch, sizes[1]]), (attn_mask, sizes))
    for mask, wanted in masks:
        if mask is not None:
            need(mask.dtype in (bool_, query.dtype), [*mask.shape] == wanted)
    result = of_floats(query)
    result.packed = False
    if not need_weights:
        return result, None
    heads = [] if average_attn_weights else [self.num_heads]
    return result, Tensor([*batch, *heads, *sizes], query.dtype)


def over(self: AnyValue, input: Tensor, hx: AnyValue = None) -> AnyValue:
    """The results of all steps, and the last states."""
    need(input.ndim in (2, 3), input.numel())
    need(input.dtype is self.weight_ih_l0.dtype)
    if input.shape[-1] != self.input_size:
        refuse(f"expects {self.input_size}, and gets {input.shape[-1]}")
    batch = [*input.shape[:-1]]
    batch.pop(1 if self.batch_first and len(batch) == 2 else 0)
    whole = [self.num_layers * self.ends, *batch, self.hidden_size]
    two = self.gates == 4
    given = [] if hx is None else [*hx] if two else [hx]
    need(hx is None or len(given) == 1 + two)
    for one in given:
        need([*one.shape] == whole, one.dtype is input.dtype)
    wide = self.hidden_size * self.ends
    output = Tensor([*input.shape[:-1], wide], input.dtype)
    output.packed = not self.batch_first
    states = tuple(Tensor(whole, input.dtype) for _ in range(1 + two))
    return output, states if two else states[0]


def step(self: AnyValue, input: Tensor, hx: AnyValue = None) -> AnyValue:
    """The state after one step."""
    need(input.ndim in (1, 2), input.dtype is self.weight_ih.dtype)
    need(input.shape[-1] == self.input_size, input.numel())
    two = self.named == "LSTMCell"
    state = Tensor([*input.shape[:-1], self.hidden_size], input.dtype)
    given = [] if hx is None else [*hx] if two else [hx]
    need(hx is None or len(given) == 1 + two)
    for one in given:
        need(one.shape == state.shape, one.dtype is input.dtype)
    return (state, of_floats(state)) if two else state


def encode(
    self: AnyValue,
    src: Tensor,
    src_mask: Tensor | None = None,
    src_key_padding_mask: Tensor | None = None,
) -> Tensor:
    """Of the shape of its argument."""
    masks = {"attn_mask": src_mask, "key_padding_mask": src_key_padding_mask}
    found = self.self_attn(src, src, src, **masks)[0]
    found.packed = False
    return of_floats(found)


def encode_all(
    self: AnyValue,
    src: Tensor,
    mask: Tensor | None = None,
    src_key_padding_mask: Tensor | None = None,
) -> AnyValue:
    """As `encode`, several times."""
    need(src_key_padding_mask is None or self.training)
    for one in self.layers:
        src = one(src, mask, src_key_padding_mask)
    return src if self.norm is None else self.norm(src)


RUN: Final[dict[str, Callable[..., AnyValue]]] = {
    **{f"Conv{n}d": convolved for n in (1, 2, 3)},
    **{f"ConvTranspose{n}d": spread for n in (1, 2, 3)},
    **{f"BatchNorm{n}d": batch_norm for n in (1, 2, 3)},
    **{f"InstanceNorm{n}d": instance_norm for n in (1, 2, 3)},
    "MultiheadAttention": attend,
    **dict.fromkeys(_GATES, over),
    **{f"{name}Cell": step for name in _GATES},
    "TransformerEncoderLayer": encode,
    "TransformerEncoder": encode_all,
}


def shown(source: str) -> Callable[[Module], str]:
    """What a layer says of its settings, in torch's own way."""
    space: dict[str, AnyValue] = {}
    exec(source, space)

    def extra_repr(self: Module) -> str:
        try:
            return str(space["extra_repr"](self))
        except AttributeError:
            return Module.extra_repr(self)  # as they were given

    return extra_repr


def layer(name: str) -> type[Module] | None:
    """The class of a layer; None if its parameters are not known."""
    text = LISTED["layers"].get(name, "")
    run = RUN.get(name)
    if not run:
        used = {*re.findall(r"self\.(\w+)", text)} - {"training"}
        form = forms(f"nn.{name}")
        stored = {one.name for _, row in form for one in row}
        if not text or not (name in BEGIN or (form and used <= stored)):
            return None
        torch = sys.modules["torch"]
        run = eval(text, {"F": F, "torch": torch, "__name__": __name__})
        run.__name__ = run.__qualname__ = "forward"
    open_ = run in (convolved, spread) or name not in RUN
    own = {"forward": _run(run, f"torch.nn.{name}", open_), "named": name}
    own["extra_repr"] = shown(LISTED["reprs"][name])
    return type(name, (Layer,), own | {"__module__": LISTED["modules"][name]})


LAYERS: Final[dict[str, AnyValue]] = {
    name: found for name in LISTED["modules"] if (found := layer(name))
}
"""The layers whose parameters are known, by name."""
