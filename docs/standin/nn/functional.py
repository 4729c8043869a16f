"""A stand-in for torch.nn.functional: which rule each function has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from .. import _nets as nets
from .. import _rules as rules
from .. import _shapes as shapes
from .._C import _nn
from .._functions import FUNCTIONS, of_torch, strictly
from .._tensor import AnyValue, Tensor


def _set(kinds: str, least: int = 0, most: int = 9) -> Callable[..., AnyValue]:
    """A rule for settings that do not matter, with the types of each."""
    names = kinds.split()

    def rule(input: Tensor, **given: AnyValue) -> Tensor:
        for name, value in given.items():
            whether = name in ("inplace", "training")
            wanted = (bool,) if whether else (int, float)
            rules.need(name in names, type(value) in wanted)
        rules.need(0 <= given.get("p", 0.5) <= 1, given.get("alpha", 1))
        rules.need(given.get("min_val", -1) <= given.get("max_val", 1))
        rules.need(least <= input.ndim <= most)
        return rules.of_floats(input)

    return rule


_INPLACE: Final = "relu relu6 silu mish selu hardswish hardsigmoid"
_PLAIN: Final = "softsign logsigmoid tanhshrink"
_DROPOUT: Final = "dropout2d dropout3d feature_alpha_dropout"
_RULES: Final[dict[str, Callable[..., AnyValue]]] = {
    **dict.fromkeys(_INPLACE.split(), _set("inplace")),
    **dict.fromkeys(_PLAIN.split(), _set("")),
    **dict.fromkeys(("dropout", "alpha_dropout"), _set("p training inplace")),
    "dropout1d": _set("p training inplace", 3, 3),
    **dict.fromkeys(_DROPOUT.split(), _set("p training inplace", 3)),
    "leaky_relu": _set("negative_slope inplace"),
    "elu": _set("alpha inplace"),
    "celu": _set("alpha inplace"),
    "hardtanh": _set("min_val max_val inplace"),
    "softplus": _set("beta threshold"),
    **dict.fromkeys(("softmax", "log_softmax", "softmin"), rules.shared),
    "glu": nets.glu,
    "layer_norm": nets.layer_norm,
    "rms_norm": nets.rms_norm,
    "batch_norm": nets.batch_norm,
    "group_norm": nets.group_norm,
    "normalize": nets.normalize,
    "cross_entropy": nets.cross_entropy,
    "nll_loss": nets.nll_loss,
    **dict.fromkeys(("mse_loss", "l1_loss"), nets.compared_loss),
    "binary_cross_entropy_with_logits": nets.compared_loss,
    **{f"max_pool{n}d": nets.most(n) for n in (1, 2, 3)},
    **{f"avg_pool{n}d": nets.average(n) for n in (2, 3)},
    **{f"adaptive_avg_pool{n}d": nets.adaptive(n) for n in (1, 2, 3)},
    "interpolate": nets.interpolate,
    "pad": nets.pad,
    "one_hot": shapes.one_hot,
    "embedding": nets.embedding,
    "scaled_dot_product_attention": nets.scaled_dot_product_attention,
}

linear, gelu = _nn.linear, _nn.gelu
globals().update(
    {
        name: function
        for name, function in FUNCTIONS.items()
        if name.startswith(("conv", "avg_pool", "pixel_", "cosine_"))
        or name in ("sigmoid", "tanh")
    }
)


def rule_of(name: str) -> Callable[..., AnyValue]:
    """The rule of a function, which raises NoRule for what it does not read."""
    path = f"torch.nn.functional.{name}"
    return strictly(_RULES[name], path) if name in _RULES else globals()[name]


def __getattr__(name: str) -> AnyValue:
    """A function, made when it is first asked for."""
    made = of_torch("torch.nn.functional", name, _RULES.get(name))
    return globals().setdefault(name, made)
