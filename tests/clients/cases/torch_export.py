"""Graphs of torch.export: read, edited, run, and put back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch
from torch import nn
from torchvision import models

from fx.use_def.values import AnyValue
from tests.clients.record import Notes, case, library, module, to_ours, to_torch

PACKAGES = ("torch", "torchvision")

MODELS: Final[dict[str, Callable[[], nn.Module]]] = {
    "resnet18": lambda: models.resnet18(num_classes=10),
    "shufflenet_v2_x0_5": lambda: models.shufflenet_v2_x0_5(num_classes=10),
    "vit": lambda: models.VisionTransformer(32, 8, 2, 2, 16, 32),
}


def _read(found: Notes, model: nn.Module, x: torch.Tensor) -> None:
    """The module of a program, run as it is and node by node."""
    gm = to_ours(torch.export.export(model, (x,)).module())
    found["graph"] = gm.graph
    found["code"] = gm.code
    found["result"] = gm(x)
    found["interpreted"] = library.Interpreter(gm).run(x)


def _put_back(found: Notes, model: nn.Module, x: torch.Tensor) -> None:
    """Each relu becomes a gelu; the program is run, saved and exported."""
    program = torch.export.export(model, (x,)).run_decompositions({})
    gm = to_ours(program.graph_module)
    relu = (torch.ops.aten.relu.default, torch.ops.aten.relu_.default)
    for node in gm.graph.nodes:
        if node.target in relu:
            node.target = torch.ops.aten.gelu.default
    gm.graph.lint()
    gm.recompile()
    back = to_torch(gm)
    edited: AnyValue = torch.export.ExportedProgram(
        back,
        back.graph,
        program.graph_signature,
        program.state_dict,
        program.range_constraints,
        program.module_call_graph,
        program.example_inputs,
        program.constants,
    )
    found["program"] = str(edited.graph)
    module(found, edited.module(), x)
    found["exported again"] = str(torch.export.export(edited.module(), (x,)))


def main() -> None:
    """Read the graph of each model, and put an edited one back."""
    for name, make in MODELS.items():
        torch.manual_seed(0)
        model, x = make().eval(), torch.rand(2, 3, 32, 32)
        with case(f"{name}, read") as found, torch.no_grad():
            _read(found, model, x)
        with case(f"{name}, edited and put back") as found, torch.no_grad():
            _put_back(found, model, x)
