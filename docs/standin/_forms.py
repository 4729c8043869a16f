"""A stand-in for torch: which arguments the functions of torch take.

torch has a function in one or more forms, such as `sum.dim_IntList(Tensor self,
int[1]? dim, bool keepdim=False)`.  A call has the first form that it fits.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from ._tensor import AnyValue, NoRule, Tensor, device, dtype

LISTED: Final[dict[str, AnyValue]] = json.loads(
    Path(__file__).with_name("listed.json").read_text(encoding="utf-8")
)
"""What torch has: docs/machinery/small_torch.py writes it down."""

PLAIN: Final = (
    "layout device pin_memory memory_format generator requires_grad _stacklevel"
)
"""Parameters that matter neither for a shape nor for a dtype."""

NUMBERS: Final = "add sub subtract mul multiply div divide floor_divide".split()
"""Functions that take a number in place of the first tensor."""


class Parameter(NamedTuple):
    """A parameter of a form; a default of `...` is none."""

    name: str
    kind: str
    default: AnyValue
    by_name: bool


@cache
def forms(name: str) -> list[tuple[str, list[Parameter]]]:
    """The forms of a function, each with its full name."""
    found = []
    for text in LISTED["forms"].get(name, ()):
        full, _, inner = text.partition("(")
        found.append((full, [*_parameters(inner)]))
    return found


def _parameters(text: str) -> Iterator[Parameter]:
    behind = False
    for star, kind, name, default in re.findall(
        r"(\*), |([\w\[\]?]+) (\w+)(?:=(\[.*?\]|[^,]+))?", text
    ):
        behind = behind or bool(star)
        if not star:
            value = ast.literal_eval(default) if default else ...
            value = None if kind == "ScalarType?" else value
            own = "input" if name == "self" else name
            factor = (kind, name) == ("Scalar", "alpha")
            yield Parameter(own, kind, value, behind or factor)
    if "pin_memory" in text and "non_blocking" not in text:
        yield Parameter("requires_grad", "bool", False, True)


def fitted(
    parameters: list[Parameter],
    args: tuple[AnyValue, ...],
    kwargs: dict[str, AnyValue],
    name: str,
    start: int,
) -> list[AnyValue] | None:
    """What a form's parameters get by a call; None if it does not fit.

    `start` is 1 for a method, whose sizes may be given one by one behind the
    tensor, and else 0.
    """
    first = [one for one in parameters if not one.by_name]
    alone = len(first) == start + 1 and first[-1].kind.endswith("nt[]")
    if alone and len(args) > start and type(args[start]) is int:
        args = (*args[:start], args[start:])
    names = [one.name for one in first][: len(args)]
    given = dict(zip(names, args, strict=False)) | kwargs
    known = {one.name for one in parameters}
    once = len(given) == len(args) + len(kwargs)
    if not once or not {*given} <= known:
        return None
    values = []
    for one in parameters:
        value = given.get(one.name, one.default)
        if one.name in given:
            value = of_kind(one.kind, value, name in NUMBERS)
        if value is ...:
            return None
        if matters(one):
            values.append(value)
    return values


def matters(parameter: Parameter) -> bool:
    """Whether rules get a parameter."""
    return parameter.name not in PLAIN.split() and parameter.kind != "None?"


def of_kind(kind: str, value: AnyValue, number: bool = False) -> AnyValue:
    """An argument as a parameter of some kind takes it; `...` if it does not.

    None is one only where the kind says so, as `int?` does.
    """
    if value is None:
        return None if kind.endswith("?") or kind == "Any" else ...
    kind = kind.removesuffix("?")
    base, _, count = kind.removesuffix("]").partition("[")
    if kind != base:
        if count and type(value) is int:
            return [value] * int(count)
        if not isinstance(value, (tuple, list)):
            return ...
        inner = [of_kind(base, one) for one in value]
        return ... if ... in inner else inner
    if kind == "Tensor" and number and type(value) in (bool, int, float):
        return value
    if kind == "Any":
        return value
    kinds = _KINDS.get(kind, ())
    exact = type(value) in kinds or isinstance(value, Tensor)
    if not (exact and isinstance(value, kinds)):
        return ...
    if kind == "Device":
        needs_place(value)
    return value


_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "Tensor": (Tensor,),
    "Scalar": (bool, int, float, complex),
    "int": (int,),
    "SymInt": (int,),
    "float": (int, float),
    "bool": (bool,),
    "str": (str,),
    "ScalarType": (dtype,),
    "Device": (device, str),
}


def needs_place(given: AnyValue) -> None:
    """Raise unless a device is one that torch has."""
    kind = given.type if isinstance(given, device) else given
    if kind.partition(":")[0] not in ("cpu", "cuda", "mps", "xpu", "meta"):
        raise NoRule
