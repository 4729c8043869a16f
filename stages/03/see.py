"""What one can see once an exercise of stage 03 is right."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

import torch

from fx.graph import Graph
from fx.proxy import GraphAppendingTracer, Proxy, TraceError
from fx.use_def.values import AnyValue


def recorded(program: Callable[[AnyValue], object]) -> str:
    """The nodes that a program leaves when it is run on a proxy."""
    graph = Graph()
    x = Proxy(graph.placeholder("x"), GraphAppendingTracer(graph))
    with suppress(TraceError):
        program(x)
    return "\n".join(f"{node.format_node()}" for node in graph.nodes)


def lowered() -> str:
    """A structure with a proxy in it."""
    graph = Graph()
    x = Proxy(graph.placeholder("x"), GraphAppendingTracer(graph))
    value: AnyValue = [x, {"dim": (x, 1)}]
    return f"{value} became {x.tracer.create_arg(value)}"


SEE: Final[dict[str, Callable[[], str]]] = {
    "TracerBase.create_arg": lowered,
    "Attribute.__getattr__": lambda: recorded(lambda x: x.T.sum() + x.shape[0]),
    "recorder": lambda: recorded(lambda x: torch.stack([x.mT, x])),
    "Proxy.__torch_function__": lambda: recorded(
        lambda x: torch.relu(torch.cat([x, x], dim=1))
    ),
    "Proxy.__iter__": lambda: recorded(_unpacked),
}
"""An exercise -> what it can do now."""


def _unpacked(x: AnyValue) -> AnyValue:
    """The code says how many items there are."""
    first, second = x
    return first + second
