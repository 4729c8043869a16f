"""unit-scaling: scales of what a trace computes, and what it does to graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch
import unit_scaling
from torch import nn
from torch.fx import Graph
from unit_scaling import transforms, utils

from fx.use_def.values import AnyValue
from tests.clients.record import Notes, case

PACKAGES = ("torch", "unit-scaling")


class Small(nn.Module):
    """Two linear layers with a norm between them, and a residual."""

    def __init__(self, layers: AnyValue = nn) -> None:
        super().__init__()
        self.first, self.norm = layers.Linear(8, 8), layers.LayerNorm(8)
        self.last = layers.Linear(8, 4)

    def forward(self, x: AnyValue) -> AnyValue:
        """The sum of the last layer's results."""
        y = nn.functional.gelu(self.norm(self.first(x))) + x
        return self.last(y).sum()


def _analysed(model: AnyValue, found: Notes) -> None:
    """Note the code of a trace with the scales of each value."""
    x = torch.rand(4, 8, requires_grad=True)
    found["code"] = utils.analyse_module(model, x, syntax_highlight=False)


def _transformed(change: Callable[[AnyValue], AnyValue], found: Notes) -> None:
    """Note what a changed network computes, and its gradients."""
    model = change(Small())
    x = torch.rand(4, 8, requires_grad=True)
    found["result"] = model(x)
    found["result"].backward()
    found["gradients"] = [x.grad, *(each.grad for each in model.parameters())]


def _tracked(change: Callable[[AnyValue], AnyValue], found: Notes) -> None:
    """Note the graph that has the scales, and those of its large values."""
    model = transforms.track_scales(change(Small()))
    model(torch.rand(4, 8)).backward()
    graph = model.scales_graph()
    assert isinstance(graph, Graph)
    for name, made in (
        ("all", graph),
        ("floats", transforms.prune_non_float_tensors(graph)),
        ("scales", transforms.prune_same_scale_tensors(graph)),
    ):
        found[name] = made
        found[f"metrics of {name}"] = [
            f"{node.name}: {node.meta.get('metrics')}" for node in made.nodes
        ]


WAYS: Final[dict[str, Callable[[Notes], None]]] = {
    "scales of a trace": lambda found: _analysed(Small(), found),
    "scales of a trace, its own layers": lambda found: _analysed(
        Small(unit_scaling), found
    ),
    "unit-scaled": lambda found: _transformed(transforms.unit_scale, found),
    "eight bits": lambda found: _transformed(transforms.simulate_fp8, found),
    "both": lambda found: _transformed(
        lambda net: transforms.simulate_fp8(transforms.unit_scale(net)), found
    ),
    "tracked": lambda found: _tracked(lambda net: net, found),
    "tracked, unit-scaled": lambda found: _tracked(
        transforms.unit_scale, found
    ),
}


def main() -> None:
    """Analyse and transform, each way."""
    for name, way in WAYS.items():
        with case(name) as found:
            way(found)
