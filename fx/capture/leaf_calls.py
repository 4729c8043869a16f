"""Stage 08, reinplace: what a capture says of functions marked with fx.wrap.

    @fx.wrap
    def gelu2(x): …

To `symbolic_trace` this is a leaf, one call in the graph.  `make_fx` records
operators of torch, and a Python function is not one: it runs, and the graph
has the operators inside of it.  Whoever marked the function may expect
otherwise, so a capture warns of it.

Functions that a library has marked with `torch.fx.wrap` are left out, because
the user of the library has marked nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final

import torch

from ..recording import frames
from ..torch_internals import pytree
from ..tracing.patching import TRACES
from ..tracing.torch_marks import is_torchs
from ..tracing.trace_run import leaf_call
from ..tracing.wrapping import ORIGINAL, all_wrapped_globals, original_of
from ..usedef.values import Value


class Capturing:
    """The trace of a thread that captures operators.

    It records no call itself: modules and functions run as outside of traces.

    Attributes:
        said: the leaf functions that were warned of.
    """

    def __init__(self) -> None:
        """Begin without a warning."""
        self.said: set[str] = set()

    def patch(self) -> None:
        """Have leaf functions warn; those that torch.fx.wrap marked do not."""
        for namespace, name, _ in all_wrapped_globals():
            if not is_torchs(namespace, name):
                TRACES.patch(namespace, [name], _warning)


def _warning(called: Callable[..., Value]) -> Callable[..., Value]:
    """A replacement of a leaf function, for captures and for traces.

    It also does what a trace of another thread needs, because a place is
    patched only once.
    """
    original = original_of(called)
    in_trace: Final[Callable[..., Value]] = leaf_call(original)

    @functools.wraps(original)
    def replacement(*args: Value, **kwargs: Value) -> Value:
        trace = TRACES.current
        if not isinstance(trace, Capturing):
            return in_trace(*args, **kwargs)
        leaves = pytree.arg_tree_leaves(*args, **kwargs)
        name = original.__name__
        if name not in trace.said and any(
            isinstance(leaf, torch.Tensor) for leaf in leaves
        ):
            trace.said.add(name)
            frames.warn(
                f"make_fx records the operators inside of {name}, although "
                "fx.wrap has marked it: a graph of operators has no calls of "
                "Python functions. To keep it as one call, make an operator "
                "of it (torch.library.custom_op), or use fx.symbolic_trace"
            )
        return original(*args, **kwargs)

    vars(replacement)[ORIGINAL] = original
    return replacement
