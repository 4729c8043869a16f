"""Extra: what a user wants to vary in a trace, and whether it can.

    fx.trace(model, x, t, dynamic={"x": {0: True, 1: Dim("n")}, "t": True})

A size, or a number, that is named so must stay free.  If the program fixes it,
the graph would refuse each other one, and the user would learn that in a later
call. So the trace is refused, with the line that fixed it, as by
`torch.export`. What
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
from .guarded_code import TracedParameter
from .guards import CALLED, NAMES, Guard
from .questions import Dims, Sizes
from .structures import (
    Constant,
    Container,
    Part,
    TensorLeaf,
    is_tensor,
    written,
)

# -- what a user says ----------------------------------------------------------


class Free:
    """Which sizes and numbers may vary, as a user says.

    Attributes:
        dims: for each leaf, which of its sizes; {0: True} for a number that
            must stay free.
        numbers: path → the type of a number that may vary.
    """

    def __init__(
        self,
        dynamic: AnyValue,
        parameters: Sequence[TracedParameter],
        leaves: Sequence[AnyValue],
    ) -> None:
        """Compare what a user says with the example.

        Args:
            dynamic: what was given to `fx.trace`.
            parameters: of the program.
            leaves: of the example.

        Raises:
            TypeError: it does not fit the example.
        """
        self.numbers: dict[str, type] = {}
        self._leaves = leaves
        is_all = dynamic is None or dynamic is True
        self.dims: list[Dims] = [None if is_all else {} for _ in leaves]
        known = {parameter.variable: parameter for parameter in parameters}
        said: AnyValue = dynamic
        for name, spec in () if is_all else dict(said or {}).items():
            if name not in known:
                raise TypeError(
                    f"dynamic= names {name!r}, and the parameters are "
                    f"{', '.join(known)}"
                )
            self._spread(known[name].part, spec, name)

    def _spread(self, part: Part, spec: AnyValue, path: str) -> None:
        """Note what a user says of a part of the inputs."""
        if spec is None or spec is False:
            return
        leaf: AnyValue = None
        if isinstance(part, TensorLeaf):
            leaf = self._leaves[part.index]
        elif type(part) is Constant:
            leaf = part.value
        if is_tensor(leaf) and isinstance(part, TensorLeaf):
            self.dims[part.index] = _dims_of(leaf, spec, path)
        elif type(leaf) in (int, float) and _name_of(spec) in _OF_NUMBERS:
            self.numbers[path] = type(leaf)
            if isinstance(part, TensorLeaf) and _name_of(spec) != "AUTO":
                self.dims[part.index] = {0: True}
        elif isinstance(part, Container) and spec is not True:
            keyed = spec if isinstance(spec, Mapping) else dict(enumerate(spec))
            keys = [*part.keys]
            for key, inner in keyed.items():
                where = written(path, key, part.kind)
                if key not in keys:
                    raise TypeError(f"dynamic= names {where}")
                self._spread(part.parts[keys.index(key)], inner, where)
        else:
            raise TypeError(
                f"dynamic= says that {path} may vary, and it is fixed: say so "
                "of sizes of tensors, or True of an int or a float, that are "
                "given in the example"
            )


def _name_of(spec: AnyValue) -> AnyValue:
    """The name of one of torch's kinds of dimensions; all else as it is."""
    kind = getattr(spec, "type", spec)
    return getattr(kind, "name", kind)


_OF_NUMBERS: Final = (True, "AUTO", "DYNAMIC")
"""What may be said of a number."""


def _dims_of(tensor: torch.Tensor, spec: AnyValue, path: str) -> Dims:
    """Which sizes of a tensor may vary, as a user says."""
    if spec is True:
        return None
    named = spec if isinstance(spec, Mapping) else dict(enumerate(spec))
    dims = {}
    for place, dim in named.items():
        name = _name_of(dim)
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


def _fixing(text: str, value: float, guards: Iterable[Guard]) -> Guard | None:
    """The first guard after which a size or number has one value only.

    Args:
        text: how it is written, `x.size(0)`.
        value: what it is in the example.
        guards: what was asked of it, and perhaps of others.
    """
    left = {value + sign * step for step in _STEPS for sign in (1, -1)}
    left |= {value * factor for factor in range(-1, 9)}
    if type(value) is float:
        left |= {value + sign * 0.3 for sign in (1, -1)}
    if text.endswith(")"):  # a size
        left = {other for other in left if other > 0}
    left.discard(value)
    named = re.compile(rf"\b{re.escape(text)}(?!\w)")
    for guard in guards:
        if guard.line and named.search(guard.expression):
            holds = _of_one(guard, named)
            left = {other for other in left if holds(other)}
            if not left:
                return guard
    return None


_STEPS: Final = (*range(1, 65), *(2**k for k in range(7, 20)), 5040, 10**6)
"""How far from the example other sizes are looked for."""


def _of_one(guard: Guard, named: re.Pattern[str]) -> Callable[[float], bool]:
    """Whether a guard holds for another value; yes if it asks for more."""
    asked = named.sub("(_size)", guard.asked)
    code = compile(asked, "", "eval")

    def holds(size: float) -> bool:
        try:
            answer = eval(code, {**_KNOWN, "_size": size})  # of our own text
        except NameError:  # of another input
            return True
        except Exception:  # it cannot be computed of such a value
            return False
        return bool(answer == guard.value)

    return holds


_KNOWN: Final = {
    **NAMES,
    "__builtins__": {name: vars(builtins)[name] for name in CALLED - {*NAMES}},
}
"""What a guard about one size names beside that."""
