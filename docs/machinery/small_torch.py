"""Which functions and modules torch has, for the small torch of a page.

A page's torch (docs/standin) has shapes and no numbers.  To record a call it
needs the function's name, and for one that is written in Python the arguments
that the function hands on: a probe is given to torch's, and asked what came.
"""

from __future__ import annotations

import inspect
import json
import sys
import types
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Final, TypeAlias

import torch
from torch import nn

AnyValue: TypeAlias = Any
"""Whatever a function of torch takes."""

SPACES: Final = (
    *("torch", "torch.functional", "torch.nn.functional"),
    *("torch.special", "torch.linalg", "torch.fft"),
)
"""The modules whose functions are listed."""

PLAIN: Final = (type(None), bool, int, float, str)
"""Types of defaults that JSON keeps."""


def listed() -> str:
    """JSON of all of them.

    `functions` has for each path, such as "torch.nn.functional.relu", its
    module and name and, if known, the parameters as [name, default] or [name],
    of which the first `handed` are handed on by position.  `modules` has the
    module of each class of torch.nn, `methods` those of tensors, and `names`
    what else there is, so that an error can tell it from a typing error.
    """
    found = {
        f"{space}.{name}": described(function)
        for space in SPACES
        for name, function in sorted(functions(space).items())
    }
    kinds = {
        name: kind.__module__
        for name, kind in sorted(vars(nn).items())
        if isinstance(kind, type) and issubclass(kind, nn.Module)
    }
    owners: dict[str, object] = {
        one: sys.modules[one] for one in (*SPACES, "torch.nn", "torch.nn.init")
    }
    owners |= {"Tensor": torch.Tensor, "Module": nn.Module}
    names = {
        owner: [name for name in dir(value) if not name.startswith("_")]
        for owner, value in owners.items()
    }
    methods = [
        one for one in names["Tensor"] if callable(getattr(torch.Tensor, one))
    ]
    return json.dumps(
        {"functions": found, "modules": kinds, "methods": methods}
        | {"names": names}
    )


def functions(space: str) -> dict[str, Callable[..., AnyValue]]:
    """The functions of a module which ask the classes of their arguments."""
    asking = torch.overrides.get_overridable_functions()
    known = {id(one) for every in asking.values() for one in every}
    place: AnyValue = torch
    for part in space.split(".")[1:]:
        place = getattr(place, part)
    return {
        name: one
        for name, one in [*vars(place).items()]
        if not name.startswith("_") and (id(one) in known or _forgotten(one))
    }


def _forgotten(value: AnyValue) -> bool:
    """Whether it is a factory, or asks though torch does not list it."""
    if isinstance(value, types.BuiltinFunctionType):
        return value is getattr(torch, value.__name__, None)
    own = getattr(value, "__module__", "") == nn.functional.__name__
    return own and "handed" in described(value)


class _Probe:
    """An argument that notes what is asked."""

    asked: ClassVar[list[AnyValue]] = []

    @classmethod
    def __torch_function__(
        cls,
        function: Callable[..., AnyValue],
        types: Iterable[type],
        args: tuple[AnyValue, ...] = (),
        kwargs: Mapping[str, AnyValue] | None = None,
    ) -> _Probe:
        """Note the call."""
        cls.asked.append((function, args, dict(kwargs or {})))
        return cls()


def described(function: Callable[..., AnyValue]) -> dict[str, AnyValue]:
    """What a page needs of a function."""
    module = function.__module__ or "torch"
    entry = {"module": module, "name": function.__name__}
    if not isinstance(function, types.FunctionType):
        return entry
    for inner in (function, getattr(nn.functional, f"_{function.__name__}", 0)):
        try:
            parameters = inspect.signature(inner).parameters.values()  # type: ignore[arg-type]
            given = [_Probe() for one in parameters if one.default is one.empty]
            if any(one.kind is one.VAR_POSITIONAL for one in parameters):
                continue  # it hands all of them on as they are
            _Probe.asked.clear()
            with warnings.catch_warnings(action="ignore"):
                function(*given)
            target, args, kwargs = _Probe.asked[0]
        except Exception:
            continue  # it looks at its arguments first
        names = [one.name for one in parameters]
        defaults = [
            [one.name] if one.default is one.empty else [one.name, one.default]
            for one in parameters
        ]
        plain = all(type(one[-1]) in PLAIN for one in defaults)
        if plain and names[len(args) :] == [*kwargs]:
            named = {"module": target.__module__, "name": target.__name__}
            return entry | named | {"parameters": defaults, "handed": len(args)}
    return entry
