"""Stage 05, codegen: symbolic_trace, from a function to a module in one call.

A `Tracer` (stage 04) runs the function and records a `Graph` (stage 02), and
a `GraphModule` compiles the graph.  The other names that torch.fx has in its
file of this name can be imported from here too.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

import torch
from torch import nn

from .graph_module import GraphModule
from .tracing.inputs import PH, PHBase, PHWithMeta, _assert_is_none
from .tracing.patching import TRACES
from .tracing.tracer import Tracer
from .tracing.wrapping import ProxyableClassMeta, wrap
from .use_def.values import AnyValue

__all__ = [
    "PH",
    "PHBase",
    "PHWithMeta",
    "ProxyableClassMeta",
    "Tracer",
    "is_fx_symbolic_tracing",
    "is_fx_tracing",
    "symbolic_trace",
    "wrap",
]


def symbolic_trace(
    root: nn.Module | Callable[..., AnyValue],
    concrete_args: dict[str, AnyValue] | None = None,
) -> GraphModule:
    """Trace a module or function, and return a GraphModule of the graph.

        class Net(nn.Module): ...
        gm = symbolic_trace(Net())
        print(gm.code)

    Args:
        root: a module, whose forward is recorded, or a plain function.
        concrete_args: values for some inputs, by name: code may branch on
            them, and they are checked when the result runs. `fx.PH` inside
            of nested values stays symbolic.

    Returns:
        A GraphModule named after the module's class or the function. It
        shares the root's submodules, parameters and buffers.

    Raises:
        AssertionError: `root` is neither a module nor a plain function.
        TraceError: the code does something that a graph cannot express.
        Whatever the code itself raises.

    torch.fx: _symbolic_trace.py, symbolic_trace
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    named = type(root) if isinstance(root, nn.Module) else root
    return GraphModule(tracer.root, graph, getattr(named, "__name__", "root"))


_SAID: Final[ContextVar[tuple[object, bool] | None]] = ContextVar(
    "fx is tracing", default=None
)
"""A trace, or None outside of traces, and what is said of it, if that is not
true: what `torch.compile` has wrapped says that none runs."""


def is_fx_tracing() -> bool:
    """Whether a symbolic trace runs in this thread or task.

    torch.fx: _symbolic_trace.py, is_fx_tracing
    """
    trace, said = TRACES.current, _SAID.get()
    return said[1] if said and said[0] is trace else trace is not None


def set_is_fx_tracing(value: bool) -> None:
    """Have `is_fx_tracing` give another answer while this trace runs.

    Outside of a trace, it has that answer outside of traces; a trace that
    begins inside is not meant.

    torch.fx: _symbolic_trace.py, _set_is_fx_tracing
    """
    trace = TRACES.current
    is_true = value == (trace is not None)
    _SAID.set(None if is_true else (trace, value))


def is_fx_symbolic_tracing() -> bool:
    """Whether a symbolic trace runs here, and torch.compile does not.

    torch.fx: _symbolic_trace.py, is_fx_symbolic_tracing
    """
    return is_fx_tracing() and not torch.compiler.is_compiling()


# Code and printed graphs name the check by the file that torch.fx has it in.
_assert_is_none.__module__ = __name__
