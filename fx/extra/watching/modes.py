"""Extra: modes and gradients that a graph loses.

    with torch.no_grad():
        y = x * self.scale

The product is recorded.  That gradients were off is not: a mode belongs to the
thread, and no call says it.  The graph runs in the mode in which it is called.
So the functions that switch modes are replaced while a trace runs, and it warns
of calls that it has recorded in another mode than the one in which it began.

To ask for the modes at each recorded call would cost every trace two per cent,
and a switch is rare.

A `torch.autograd.Function` is traced through: the graph has the calls of its
forward, but not the backward that it defines.  That is warned of, too.
Quantizers round in forward and let the gradient pass in backward; as a graph,
such a model trains with gradients of zero.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from itertools import islice
from typing import Final

import torch
from torch.autograd.function import BackwardCFunction

from ...graph import Graph
from ...recording import frames
from ...torch_private.watching import GRADIENTS
from ...tracing.patching import TRACES
from ...tracing.wrapping import find_proxy
from ...use_def.values import AnyValue

MODES: Final = (
    GRADIENTS,
    (torch.inference_mode, ["__enter__", "__exit__"]),
    (vars(torch), ["set_autocast_enabled"]),
)
"""Where torch's Python code looks up what switches a mode, on or back."""


_DEVICES: Final = ("cpu", "cuda")
"""The devices whose autocast is looked at; that of others is not noticed."""


class Modes:
    """What a trace records in other modes than the one in which it began.

    If it begins under `no_grad`, that is not another mode.
    """

    def __init__(self, graph: Graph) -> None:
        """Begin with the modes of now, and an empty graph."""
        self._graph = graph
        self._first = _modes()
        self._seen = 0

    def warn(self) -> None:
        """Warn of nodes recorded since the last call, if the modes differ.

        Called before each switch, and when the trace has ended: what was
        recorded since the last call is in the mode that is on now.  A block in
        which nothing is recorded, such as one that writes into a buffer,
        loses nothing.

        Cost: O(1), but O(nodes) for a warning.
        """
        nodes, seen = self._graph.nodes, self._seen
        self._seen = len(nodes)
        entered = [mode for mode in _modes() if mode not in self._first]
        if entered and len(nodes) > seen:
            first = next(islice(nodes, seen, None))
            if first.op == "output":
                return
            frames.warn(
                f"{first} was recorded with {' and '.join(entered)}, and the "
                "graph does not keep that: it runs in the modes in which it "
                "is called. Call it in these, or move the code into a leaf "
                "module or a function marked with fx.wrap"
            )


def _noting(_: object) -> Callable[[AnyValue], None]:
    """What makes a context, and has the forward that will get it watched.

    Programs bind `apply` to names of their own before the trace begins, and it
    is C++ since torch 2.15, so it cannot be replaced. It makes a context
    first, of a class below `BackwardCFunction`, and then looks up `forward`,
    and both of them are Python.  `BackwardCFunction` has no `__init__` of its
    own, and has none after the trace.
    """

    def __init__(ctx: AnyValue) -> None:
        if TRACES.current is not None:
            cls: type = ctx._forward_cls  # noqa: SLF001
            classes = cls.__mro__
            (owner, *_) = (kind for kind in classes if "forward" in vars(kind))
            TRACES.patch(owner, ["forward"], _warning)

    return __init__


def _warning(called: AnyValue) -> AnyValue:
    """The forward of a function with its own backward, with a warning."""

    @functools.wraps(called)
    def forward(*args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        if TRACES.current is not None and find_proxy(args) is not None:
            frames.warn(
                "a torch.autograd.Function is traced through: the graph does "
                "not keep its backward, so gradients are those of the calls "
                "that its forward makes. Call it in a function marked with "
                "fx.wrap"
            )
        return called(*args, **kwargs)

    return staticmethod(forward)


APPLY: Final = BackwardCFunction, ["__init__"], _noting
"""What a trace replaces to see `apply` of functions with their own backward."""


def _modes() -> list[str]:
    """The modes of this thread, in words, which the warning then says."""
    gradients = "on" if torch.is_grad_enabled() else "off"
    inference = "on" if torch.is_inference_mode_enabled() else "off"
    return [
        f"gradients {gradients}",
        f"inference mode {inference}",
        *map(_autocast, _DEVICES),
    ]


def _autocast(device: str) -> str:
    """Whether calls on a device have their arguments cast, and to what."""
    if torch.is_autocast_enabled(device):
        return f"autocast to {torch.get_autocast_dtype(device)} for {device}"
    return f"no autocast for {device}"
