"""Extra: which calls a trace keeps whole, by the user's choice.

    fx.trace(model, x, leaves=["lib.attention", Cache.update, model.head])

A function is replaced, while the trace runs, wherever a Python module or class
has it.  In other threads the replacement calls the original.

`fx.wrap` has to be written into the module that calls the function, which is
most often not the user's; `leaves=` names the function from outside. Another
module may have imported it by its name, so all modules are looked through, if
there is such a leaf.
"""

from __future__ import annotations

import functools
import pkgutil
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from torch import nn

from ...tracing.patching import names_of
from ...tracing.wrapping import all_wrapped_globals
from ...usedef.values import Value
from .calls import Place, places_of

Leaf: TypeAlias = nn.Module | str | Callable[..., Value]
"""What can be a leaf."""


class Leaves:
    """The modules and functions that a trace keeps whole.

    Attributes:
        modules: those among the root's.
        functions: the others.
    """

    def __init__(self, root: object, given: Iterable[Leaf]) -> None:
        """Look up what the user has named.

        Args:
            root: a module, perhaps; a string can be a path in it.
            given: the user's choice.

        Raises:
            ValueError: nothing has such a path.
            TypeError: it is neither a module nor a function.
        """
        self.modules: set[nn.Module] = set()
        self.functions: list[Value] = []
        paths: dict[str, nn.Module] = {}
        if isinstance(root, nn.Module):
            paths.update(root.named_modules())
        for leaf in given:
            value: Value = leaf
            if isinstance(leaf, str):
                value = paths.get(leaf) or _looked_up(leaf)
            if isinstance(value, nn.Module):
                self.modules.add(value)
            elif callable(value) and not isinstance(value, type):
                self.functions.append(value)
            else:
                raise TypeError(
                    f"{leaf!r} cannot be a leaf: give functions, methods and "
                    "modules, or their dotted paths"
                )

    def places(self) -> Iterator[Place]:
        """Where Python looks the functions up."""
        for namespace, name, _ in all_wrapped_globals():
            yield namespace, name
        yield from places_of(self.functions)
        for function in self.functions:
            yield from _methods(function)


def _looked_up(path: str) -> Value:
    """The object of a dotted path."""
    try:
        return pkgutil.resolve_name(path)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"no leaf has the path {path!r}: it is neither a module of the "
            f"root nor something that can be imported ({error})"
        ) from None


def _methods(function: Value) -> Iterator[Place]:
    """The classes that have a method, and its name there."""
    *way, name = str(getattr(function, "__qualname__", "")).split(".")
    module = sys.modules.get(str(getattr(function, "__module__", "")))
    holder: Value = functools.reduce(
        lambda value, part: getattr(value, part, None), way, module
    )
    inner = getattr(function, "__func__", function)
    if isinstance(holder, type):
        method = names_of(holder).get(name)
        if getattr(method, "__func__", method) is inner:
            yield holder, name
