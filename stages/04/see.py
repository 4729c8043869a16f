"""What one can see once an exercise of stage 04 is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch
from torch import nn

from fx.linked_list.opcodes import Opcode
from fx.tracing.patching import Patches
from fx.tracing.tracer import Tracer
from fx.tracing.wrapping import wrap
from fx.use_def.values import AnyValue
from stages.residual import Residual
from tests.zoo import ZOO

wrap("len")


class Scaled(nn.Module):
    """The example inside another module, with a constant and a leaf."""

    def __init__(self) -> None:
        super().__init__()
        self.block = Residual()
        self.factor = torch.tensor(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scaled by a constant and the number of rows.

        Args:
            x: of shape (rows, 4).
        """
        result: torch.Tensor = self.block(x) * self.factor / len(x)
        return result


class Deep(Tracer):
    """A tracer for which no module is a leaf."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Never.

        Args:
            m: the module that is called.
            module_qualified_name: its path.
        """
        return False


def patched() -> str:
    """A global is replaced while a trace runs."""
    place: dict[str, AnyValue] = {"greet": lambda: "hello"}
    patches = Patches()
    with patches.during(Tracer()):
        patches.patch(place, ["greet"], lambda greet: lambda: f"{greet()}!")
        while_traced = place["greet"]()
    return f"while a trace runs {while_traced!r}, then {place['greet']()!r}"


def resnet() -> str:
    """A real network is traced."""
    network = next(one for one in ZOO if one.name == "resnet18")
    graph = Tracer().trace(network.build().eval())
    modules = graph.find_nodes(op="call_module")
    return f"ResNet-18: {len(graph.nodes)} nodes, {len(modules)} of modules"


def graph_of(tracer: Tracer, op: Opcode) -> str:
    """The nodes of an opcode in a trace of the example."""
    found = tracer.trace(Scaled()).find_nodes(op=op)
    return "\n".join(f"{node.format_node()}" for node in found)


SEE: Final[dict[str, Callable[[], str]]] = {
    "patcher": patched,
    "Tracer.call_module": resnet,
    "Tracer.getattr": lambda: graph_of(Deep(), "get_attr"),
    "Tracer._state_node": lambda: graph_of(Tracer(), "get_attr"),
}
"""An exercise -> what it can do now."""
