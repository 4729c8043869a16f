"""Which functions and modules torch has, for the small torch of a page.

A page's torch (docs/standin) has shapes and no numbers.  To record a call it
needs the function's name, and for one that is written in Python the arguments
that the function hands on: a probe is given to torch's, and asked what came.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
import textwrap
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

KINDS: Final = ("Tensor", "int", "bool", "float", "str")
"""Types of parameters that a page checks."""

FIXED: Final = (
    "size_average reduce out recompute_scale_factor min_value max_value "
    "_weight _freeze _random_samples"
)
"""Parameters that a page takes the default of."""

OTHERS: Final = {
    **{"dtype": "ScalarType?", "device": "Device?", "size": "Any"},
    **dict.fromkeys(("embed_dim", "num_heads"), "int"),
    **{"input": "Tensor", "_stacklevel": "int"},
}
"""Types of parameters that torch's own annotations do not say."""

OTHER_SPACES: Final = (
    *("torch.nn", "torch.nn.init", "torch.nn.utils", "torch.nn.modules"),
)
"""The modules of which the names are listed, and no functions."""

PLAIN: Final = (type(None), bool, int, float, str)
"""Types of defaults that JSON keeps."""


def listed() -> str:
    """JSON of all of them.

    `functions` has for each path, such as "torch.nn.functional.relu", its
    module and name and, if known, the parameters as [name, default] or [name],
    of which the first `handed` are handed on by position.  `modules` has the
    module of each class of torch.nn, `layers` the forward of some, `reprs`
    what each says of its settings, `methods` those of tensors, `forms` how all
    are called, and `names` what else there is, so that an error can tell it
    from a typing error.
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
        one: sys.modules[one] for one in (*SPACES, *OTHER_SPACES)
    }
    owners |= {"Tensor": torch.Tensor, "Module": nn.Module}
    names = {
        owner: [name for name in dir(value) if not name.startswith("_")]
        for owner, value in owners.items()
    }
    methods = [
        one for one in names["Tensor"] if callable(getattr(torch.Tensor, one))
    ]
    builtin = {*methods, *(one["name"] for one in found.values())}
    spoken = {name: forms(name) for name in sorted(builtin)}
    for short, space in (("functional", SPACES[1]), ("F", SPACES[2])):
        for name, one in functions(space).items():
            own = getattr(nn.functional, f"_{name}", one)
            if isinstance(own, types.FunctionType):
                spoken[f"{short}.{name}"] = [form(f"{short}.{name}", own)]
    for name, one in vars(nn.init).items():
        if name.endswith("_") and callable(one) and name[0] != "_":
            spoken[f"init.{name}"] = [form(f"init.{name}", one)]
    for name in kinds:
        spoken[f"nn.{name}"] = [form(f"nn.{name}", getattr(nn, name))]
    layers = {name: forwarded(getattr(nn, name)) for name in kinds}
    shown = {
        name: inspect.getsource(nn.__dict__[name].extra_repr) for name in kinds
    }
    return json.dumps(
        {"functions": found, "modules": kinds, "methods": methods}
        | {"names": names, "forms": {k: v for k, v in spoken.items() if v}}
        | {"layers": {k: v for k, v in layers.items() if v}}
        | {"reprs": {k: textwrap.dedent(v) for k, v in shown.items()}}
    )


def forwarded(kind: type[nn.Module]) -> str:
    """The forward of a module as an expression, or "" if it is longer.

    It is such as "lambda self, input: F.relu(input, inplace=self.inplace)".
    """
    source = textwrap.dedent(inspect.getsource(kind.forward))
    own: AnyValue = ast.parse(source).body[0]
    given = [*own.args.args, own.args.vararg, own.args.kwarg]
    for one in filter(None, given):
        one.annotation = None
    last = own.body[-1]
    before = [ast.unparse(one) for one in own.body[:-1]]
    before = [one for one in before if "_check_input_dim(" not in one]
    known = {"self", "F", "torch", *(one.arg for one in given if one)}
    names = {one.id for one in ast.walk(last) if isinstance(one, ast.Name)}
    doc = 1 if ast.get_docstring(own) else 0
    if len(before) > doc or not isinstance(last, ast.Return):
        return ""
    text = f"lambda {ast.unparse(own.args)}: {ast.unparse(last.value or last)}"
    return text if names <= known else ""


def forms(name: str) -> list[str]:
    """The forms of a function in C++ that takes tensors, or makes one.

    Each is such as "sum.dim_IntList(Tensor self, int[1]? dim"; those that write
    into an argument of their own are left out.
    """
    packet = getattr(torch.ops.aten, name, None)
    each = (
        [getattr(packet, one) for one in packet.overloads()] if packet else []
    )
    return [
        re.sub(r"\((a|b|c)[^)]*\)", "", text).rpartition(") ->")[0]
        for text in (str(one._schema).removeprefix("aten::") for one in each)
        if "Tensor" in text
        and "Dimname" not in text
        and not re.search(r"\*, [^>]*\(\w!\)", text)
    ]


def form(name: str, function: Callable[..., AnyValue]) -> str:
    """The form of a function in Python, as those of `forms`."""
    texts = []
    for one in inspect.signature(function).parameters.values():
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            return ""
        kind = str(one.annotation)
        if isinstance(one.annotation, type):
            kind = one.annotation.__name__
        kind = re.sub(r"torch\.|typing\.", "", kind)
        found = re.fullmatch(r"Optional\[(\w+)\]|(\w+) \| None", kind)
        kind = f"{found[1] or found[2]}?" if found else kind
        if kind.startswith("Literal"):
            kind = "str"
        elif one.annotation is one.empty:
            kind = type(one.default).__name__
        if one.name in FIXED.split():
            kind = "None?"
        elif one.name in OTHERS:
            kind = OTHERS[one.name]
        elif kind.rstrip("?") not in KINDS:
            kind = "Any"
        if one.kind is one.KEYWORD_ONLY and "*" not in texts:
            texts.append("*")
        value = one.default
        value = value.__name__ if inspect.isfunction(value) else value
        given = "" if value is one.empty else f"={value!r}"
        texts.append(f"{kind} {one.name}{given}")
    return f"{name}({', '.join(texts)}"


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
