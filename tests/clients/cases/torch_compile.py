"""A backend of torch.compile that edits Dynamo's graph, and torch.export's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch
import torch.fx
from torch import nn
from torchvision import models

from fx.use_def.values import AnyValue
from tests.clients.record import Notes, case

PACKAGES = ("torch", "torchvision")

MODELS: Final[dict[str, Callable[[], nn.Module]]] = {
    "resnet18": lambda: models.resnet18(num_classes=10),
    "mobilenet_v2": lambda: models.mobilenet_v2(num_classes=10),
    "vit": lambda: models.VisionTransformer(32, 8, 2, 2, 16, 32),
}


RELUS: Final = (
    nn.functional.relu,
    torch.ops.aten.relu.default,
    torch.ops.aten.relu_.default,
)


def _edited(gm: AnyValue) -> AnyValue:
    """The graph with each relu written as a clamp, run node by node once."""
    if not isinstance(gm, torch.fx.GraphModule):
        return gm  # as libraries do: nothing would be edited, and none told
    graph: AnyValue = torch.fx.Graph()
    graph.output(graph.graph_copy(gm.graph, {}))
    for node in list(graph.nodes):
        if isinstance(node, torch.fx.Node) and node.target in RELUS:
            with graph.inserting_after(node):
                new = graph.call_function(torch.clamp_min, (node.args[0], 0.0))
            node.replace_all_uses_with(new)
            graph.erase_node(node)
    graph.lint()
    return torch.fx.GraphModule(gm, graph)


def _train(found: Notes, make: Callable[[], nn.Module]) -> None:
    """One step of training, compiled; the loss is also eager's."""

    def backend(gm: AnyValue, _: AnyValue) -> AnyValue:
        edited = _edited(gm)
        found["graph"] = edited.graph
        found["code"] = edited.code
        return torch.fx.Transformer(edited).transform()

    losses = []
    for compiled in False, True:
        torch.manual_seed(0)
        torch._dynamo.reset()
        model = make()
        step = torch.compile(model, backend=backend) if compiled else model
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        x, target = torch.rand(2, 3, 32, 32), torch.tensor([1, 2])
        loss: AnyValue = nn.functional.cross_entropy(step(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss)
        found["weights" if compiled else "eager"] = list(model.parameters())
    found["losses"] = losses
    torch.testing.assert_close(*losses)


def _export(found: Notes, make: Callable[[], nn.Module]) -> None:
    """The module of an exported program, edited; the result is eager's."""
    torch.manual_seed(0)
    model, x = make().eval(), torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        exported = torch.export.export(model, (x,)).module()
        edited = _edited(exported)
        found["code"] = edited.code
        found["parameters"] = [name for name, _ in exported.named_parameters()]
        (result,) = edited(x)  # nested as the graph has it, and not as given
        found["result"] = result
        torch.testing.assert_close(result, model(x))


def main() -> None:
    """Train each model one step, and export it."""
    for name, make in MODELS.items():
        with case(f"{name}, a step of training") as found:
            _train(found, make)
        with case(f"{name}, exported") as found:
            _export(found, make)
