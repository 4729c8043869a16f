"""Stage 04, module patching: functions that were marked with torch.fx.wrap.

A library such as torchvision marks its leaf functions with `torch.fx.wrap`,
because it cannot know that fx will trace them.  Each trace therefore takes
torch.fx's registry over into our own first, and code generation asks here
which of the two libraries marked a function.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import torch.fx

from ..torch_private.tracing import MARKED
from ..use_def.values import AnyValue
from .state import path_among
from .wrapping import (
    MARK,
    Globals,
    all_wrapped_globals,
    lookup,
    note_wrapped,
    original_of,
    wrap,
)

_WHERE: Final = "torch.fx.wrap"
"""What our registry has in place of the line of the call, which torch.fx does
not keep."""


def _marks() -> list[tuple[str, Globals]]:
    """What torch.fx has marked: names, each with the globals it is in."""
    known = list(MARKED.items())
    return [(name, namespace) for (_, name), namespace in known]


def take_over() -> None:
    """Let what `torch.fx.wrap` marks be wrapped for fx, too.

    A class is not taken over: its instances could not be told by `isinstance`
    while a trace replaces it.

    It is made when a trace begins, because the library may have been imported
    after fx.

    Cost: O(functions that are marked).
    """
    for name, namespace in _marks():
        marked = namespace.get(MARK, {})
        if name not in marked and not isinstance(lookup(namespace, name), type):
            note_wrapped(namespace, name, _WHERE)


def is_torchs(namespace: Globals, name: str) -> bool:
    """Whether torch.fx.wrap has marked a global, and not fx.wrap."""
    return bool(namespace[MARK][name] == _WHERE)


def is_leaf_function(function: AnyValue) -> bool:
    """Whether a function was marked as a leaf, in any module, by either wrap.

    Cost: O(functions that are marked).
    """
    take_over()
    return any(leaf is function for _, _, leaf in all_wrapped_globals())


def wrap_for(function: AnyValue) -> Callable[..., AnyValue]:
    """What marks a leaf function again: torch.fx.wrap if that marked it.

    Where both did, it is `fx.wrap`. The same holds for a function of math:
    both libraries take those for leaves, and the code that torch.fx generates
    marks them, so the answer would depend on what it has traced before.

    Cost: O(functions that are marked).
    """
    if path_among(function, vars(math).items()):
        return wrap
    for name, namespace in _marks():
        mark = namespace.get(MARK, {}).get(name)
        if original_of(lookup(namespace, name)) is function and (
            mark is None or mark == _WHERE
        ):
            return torch.fx.wrap
    return wrap
