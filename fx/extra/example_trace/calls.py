"""Extra: calls that a trace sees, because it has replaced what is called.

A call is one value, a named tuple, so that it can be made, changed and
recorded without three arguments through all functions. A place that a symbolic
trace of another thread has replaced meanwhile stays as it is.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

import torch

from ...torch_internals import pytree
from ...torch_internals.symbolic_sizes import SYMBOLIC
from ...tracing.patching import TRACES
from ...tracing.wrapping import ORIGINAL, original_of
from ...usedef.values import Value

Function: TypeAlias = Callable[..., Value]
Place: TypeAlias = tuple[Value, str]
"""Where Python looks something up: globals or a class, and a name."""


class Call(NamedTuple):
    """A call that is to be made, and perhaps recorded.

    Attributes:
        function: what is called.
        args: with these arguments.
        kwargs: and these, by name.
    """

    function: Function
    args: tuple[Value, ...]
    kwargs: dict[str, Value]

    @property
    def name(self) -> str:
        """The name of the function; "" if it has none."""
        return getattr(self.function, "__name__", "")

    def run(self) -> Value:
        """Make the call."""
        return self.function(*self.args, **self.kwargs)

    def mapped(self, change: Callable[[Value], Value]) -> Call:
        """The same call with other values in its arguments."""
        given = pytree.tree_map(change, (self.args, self.kwargs))
        return Call(self.function, *given)

    def has_symbols(self) -> bool:
        """Whether it is given numbers computed of sizes."""
        leaves = pytree.tree_leaves((self.args, self.kwargs))
        return any(isinstance(leaf, SYMBOLIC) for leaf in leaves)

    def has_values(self) -> bool:
        """Whether it is given tensors, or numbers computed of sizes."""
        leaves = pytree.tree_leaves((self.args, self.kwargs))
        return any(isinstance(leaf, _VALUES) for leaf in leaves)


_VALUES: Final = (torch.Tensor, *SYMBOLIC)


def current() -> Value:
    """The tracer of the trace on an example that runs here; None without."""
    return getattr(TRACES.current, "example_tracer", None)


def handing_to(
    handle: Callable[[Value, Call], Value],
) -> Callable[[Value], Value]:
    """A maker of replacements, which hand each call to the trace that runs.

    Where none does, or nothing is recorded, they call the original.

    Args:
        handle: is given the tracer, and the call of the original.
    """

    def make(called: Value) -> Value:
        kind: Value = type(called)
        if kind in (staticmethod, classmethod):
            return kind(make(called.__func__))
        original = original_of(called)

        @functools.wraps(original)
        def replacement(*args: Value, **kwargs: Value) -> Value:
            tracer = current()
            if tracer is None or tracer.paused:
                return original(*args, **kwargs)
            return handle(tracer, Call(original, args, kwargs))

        vars(replacement)[ORIGINAL] = original
        return replacement

    return make


def places_of(functions: Iterable[Value]) -> Iterator[Place]:
    """Where Python modules have some functions among their globals.

    Cost: O(globals of all modules).
    """
    wanted = {id(function) for function in functions}
    for module in [*sys.modules.values()] if wanted else []:
        members = getattr(module, "__dict__", {})
        if not wanted.isdisjoint(map(id, [*members.values()])):
            names = [name for name in members if id(members[name]) in wanted]
            yield from ((members, name) for name in names)
