"""Extra: what a user wants to vary in a trace, and whether it can.

    fx.trace(model, x, dynamic={"x": {0: True, 1: Dim("length")}})

A size that is named so must stay free.  If the program fixes it, the graph
would refuse each other size, and the user would learn that in a later call. So
the trace is refused, with the line that fixed it, as by `torch.export`. What
the user did not name, or gave `Dim.AUTO`, may vary if it can.

Whether a size is fixed is asked of the guards: other sizes are put in its place
until one is found that they allow. For guards that relate sizes with each
other, torch's `ShapeEnv` knows.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import torch

from ...proxy import TraceError
from ...torch_private.symbolic_sizes import hint_of
from ...use_def.values import AnyValue
from . import errors
from .guarded_code import Parameter
from .guards import CALLED, NAMES, Guard
from .questions import Dims, Sizes
from .structures import Container, Leaf, Part

# -- what a user says ----------------------------------------------------------


def free_sizes(
    dynamic: AnyValue,
    parameters: Sequence[Parameter],
    tensors: Sequence[torch.Tensor],
) -> list[Dims]:
    """For each tensor, which of its sizes may vary.

    Args:
        dynamic: what a user gave to `fx.trace`.
        parameters: of the program.
        tensors: of the example.

    Raises:
        TypeError: it does not fit the example.
    """
    if dynamic is None or dynamic is True:
        return [None] * len(tensors)
    dims: list[Dims] = [{} for _ in tensors]
    known = {parameter.variable: parameter for parameter in parameters}
    for name, spec in dict(dynamic or {}).items():
        if name not in known:
            raise TypeError(
                f"dynamic= names {name!r}, and the parameters are "
                f"{', '.join(known)}"
            )
        _spread(known[name].part, spec, tensors, dims, name)
    return dims


def _spread(
    part: Part,
    spec: AnyValue,
    tensors: Sequence[torch.Tensor],
    dims: list[Dims],
    path: str,
) -> None:
    """Note what a user says of a part of the inputs."""
    if spec is None or spec is False:
        return
    if isinstance(part, Leaf):
        dims[part.index] = _dims_of(tensors[part.index], spec, path)
    elif isinstance(part, Container) and spec is not True:
        keyed = spec if isinstance(spec, Mapping) else dict(enumerate(spec))
        keys = [*part.keys]
        for key, inner_spec in keyed.items():
            if key not in keys:
                raise TypeError(f"dynamic= names {path}[{key!r}]")
            inside, where = part.parts[keys.index(key)], f"{path}[{key!r}]"
            _spread(inside, inner_spec, tensors, dims, where)
    else:
        raise TypeError(
            f"dynamic= says that {path} may vary, and it is fixed: say so of "
            "a tensor that is given in the example"
        )


def _dims_of(tensor: torch.Tensor, spec: AnyValue, path: str) -> Dims:
    """Which sizes of a tensor may vary, as a user says."""
    if spec is True:
        return None
    named = spec if isinstance(spec, Mapping) else dict(enumerate(spec))
    dims = {}
    for place, dim in named.items():
        kind = getattr(dim, "type", dim)
        name = getattr(kind, "name", kind)
        if isinstance(dim, int) and not isinstance(dim, bool):
            if tensor.size(place) != dim:
                raise TypeError(
                    f"dynamic= says that {path}.size({place}) is {dim}, and "
                    f"it is {tensor.size(place)} in the example"
                )
        elif dim not in (None, False) and name != "STATIC":
            if hasattr(dim, "root"):
                raise TypeError(f"{dim} is computed of another Dim: give one")
            named_one = dim if hasattr(dim, "__name__") else name != "AUTO"
            dims[place % tensor.dim()] = named_one
    return dims


# -- what the program fixes ----------------------------------------------------


def check_free(sizes: Sizes) -> None:
    """Raise TraceError if the program fixes a size that must stay free."""
    for text, number in sizes.marked.items():
        value, guards = hint_of(number), sizes.guards
        guard = _fixing(text, value, guards) or sizes.fixed.get(text)
        if guard is not None:
            sizes.fixed[text] = guard
            raise TraceError(errors.fixed(text, value, f"{guard}", guard.line))


def _fixing(text: str, value: int, guards: Iterable[Guard]) -> Guard | None:
    """The first guard after which a size has one value only.

    Args:
        text: how the size is written, `x.size(0)`.
        value: what it is in the example.
        guards: what was asked of it, and perhaps of others.
    """
    left = {value + sign * step for step in _STEPS for sign in (1, -1)}
    left |= {value * factor for factor in range(2, 9)}
    left = {other for other in left if other > 0 and other != value}
    for guard in guards:
        if guard.line and text in guard.expression:
            holds = _of_one(guard, text)
            left = {other for other in left if holds(other)}
            if not left:
                return guard
    return None


_STEPS: Final = (*range(1, 65), *(2**k for k in range(7, 20)), 5040, 10**6)
"""How far from the example other sizes are looked for."""


def _of_one(guard: Guard, text: str) -> Callable[[int], bool]:
    """Whether a guard holds for another size; yes if it asks for more."""
    asked = re.sub(rf"\b{re.escape(text)}", "_size", guard.asked)
    code = compile(asked, "", "eval")

    def holds(size: int) -> bool:
        try:
            answer = eval(code, {**_KNOWN, "_size": size})  # of our own text
        except NameError:  # of another input
            return True
        except Exception:  # it cannot be computed of such a size
            return False
        return bool(answer == guard.value)

    return holds


_KNOWN: Final = {
    **NAMES,
    "__builtins__": {name: vars(builtins)[name] for name in CALLED - {*NAMES}},
}
"""What a guard about one size names beside that."""
