"""A backend of torch.compile that edits Dynamo's graph with the library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch
from torch import nn
from torchvision import models

from fx.usedef.values import Value
from tests.clients.record import Notes, case, library, to_ours, to_torch

PACKAGES = ("torch", "torchvision")

MODELS: Final[dict[str, Callable[[], nn.Module]]] = {
    "resnet18": lambda: models.resnet18(num_classes=10),
    "mobilenet_v2": lambda: models.mobilenet_v2(num_classes=10),
    "vit": lambda: models.VisionTransformer(32, 8, 2, 2, 16, 32),
}


def _edited(gm: Value) -> Value:
    """The graph with each relu written as a clamp, run node by node once."""
    ours = to_ours(gm)
    for node in list(ours.graph.nodes):
        if node.op == "call_function" and node.target is nn.functional.relu:
            with ours.graph.inserting_after(node):
                new = ours.graph.call_function(
                    torch.clamp_min, (node.args[0], 0.0)
                )
            node.replace_all_uses_with(new)
            ours.graph.erase_node(node)
    ours.graph.lint()
    ours.recompile()
    return ours


def _train(found: Notes, make: Callable[[], nn.Module]) -> None:
    """One step of training, compiled; the loss is also eager's."""

    def backend(gm: Value, _: Value) -> Value:
        edited = _edited(gm)
        found["graph"] = edited.graph
        found["code"] = edited.code
        return to_torch(library.Transformer(edited).transform())

    losses = []
    for compiled in False, True:
        torch.manual_seed(0)
        torch._dynamo.reset()
        model = make()
        step = torch.compile(model, backend=backend) if compiled else model
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        x, target = torch.rand(2, 3, 32, 32), torch.tensor([1, 2])
        loss: Value = nn.functional.cross_entropy(step(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss)
        found["weights" if compiled else "eager"] = list(model.parameters())
    found["losses"] = losses
    torch.testing.assert_close(*losses)


def main() -> None:
    """Train each model one step."""
    for name, make in MODELS.items():
        with case(f"{name}, a step of training") as found:
            _train(found, make)
