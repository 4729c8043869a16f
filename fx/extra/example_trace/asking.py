"""Extra: `isinstance(x.shape[0], int)`, which is true when the graph runs.

While a program is traced on an example, a size is a `torch.SymInt`, which is
not an int.  So `isinstance` is replaced where the program's modules look it up,
and gives the answer for the number.  `type(n) is int`, `n is 1` and a pattern
`case int()` ask in ways that cannot be replaced.

All modules get the replacement at once, since fx cannot know which of them
the program will call.  It is the one that a symbolic trace uses, so that
both kinds of traces may run in two threads.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import torch

from ...tracing.state import is_library
from ...usedef.values import Value

_NUMBERS: dict[type, object] = {
    torch.SymInt: 0,
    torch.SymFloat: 0.0,
    torch.SymBool: False,
}
"""Class of a symbolic number -> a number of the kind that it stands for."""


def is_one_for_python(number: object, kinds: Value) -> bool:
    """Whether what a symbolic number stands for is of some classes."""
    known = _NUMBERS.get(type(number))
    return known is not None and isinstance(known, kinds)


def places_of_isinstance() -> Iterator[dict[str, Value]]:
    """The globals of all modules that are not torch's, fx's or Python's."""
    for name, module in [*sys.modules.items()]:
        if not is_library(name):
            namespace = getattr(module, "__dict__", None)
            if isinstance(namespace, dict) and "isinstance" not in namespace:
                yield namespace
