"""A stand-in for torch.nn.init: numbers are drawn, which do not matter here."""

from __future__ import annotations

import math

from .._forms import fitted, forms, matters
from .._functions import lacking, unknown
from .._tensor import AnyValue, Tensor

_OF_MATRICES = ("xavier_", "kaiming_", "orthogonal_", "sparse_", "dirac_")


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """By how much weights grow before a function that shrinks."""
    slope = 0.01 if param is None else param
    gains = {"tanh": 5 / 3, "relu": math.sqrt(2), "selu": 3 / 4}
    gains["leaky_relu"] = math.sqrt(2 / (1 + slope**2))
    if nonlinearity.startswith(("linear", "conv", "sigmoid")):
        return 1.0
    return gains[nonlinearity]


def __getattr__(name: str) -> AnyValue:
    """A function that fills a tensor, and gives it back."""
    path = f"torch.nn.init.{name}"
    if not (own := forms(f"init.{name}")):
        raise lacking("torch.nn.init", name)

    def fill(*args: AnyValue, **kwargs: AnyValue) -> Tensor:
        values = fitted(own[0][1], args, kwargs, "", 0)
        names = [one.name for one in own[0][1] if matters(one)]
        given = dict(zip(names, values or (), strict=False))
        fits = min(given.get("std", 1), given.get("gain", 1)) >= 0
        fits &= given.get("mode", "fan_in") in ("fan_in", "fan_out")
        fits &= given.get("a", 0) <= given.get("b", math.inf)
        fits &= name != "trunc_normal_" or given.get("std") != 0
        if not (values and values[0].numel() and fits):
            raise unknown(path)
        found: Tensor = values[0]
        if found.ndim < 2 and name.startswith(_OF_MATRICES):
            raise ValueError(f"{name} needs 2 dimensions, not {found.ndim}")
        return found

    fill.__name__ = fill.__qualname__ = name
    fill.__module__ = "torch.nn.init"
    return fill
