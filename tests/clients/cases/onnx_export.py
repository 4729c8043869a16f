"""PyTorch's exporters to ONNX, each given a trace."""

from __future__ import annotations

import io
from typing import Final

import onnx
import torch

from fx.use_def.values import AnyValue
from tests.clients.record import case, library
from tests.clients.small import Small

PACKAGES = ("onnx", "onnxscript", "torch")

ONNX: Final[AnyValue] = torch.onnx


def main() -> None:
    """Export a trace by TorchScript, and by torch.export."""
    x = torch.zeros(2, 3, 8, 8)
    for name, new in (("by TorchScript", False), ("by torch.export", True)):
        with case(name) as found, torch.no_grad():
            file = io.BytesIO()
            traced = library.symbolic_trace(Small().eval())
            ONNX.export(traced, (x,), file, dynamo=new)
            made = onnx.load_model_from_string(file.getvalue())
            onnx.checker.check_model(made)
            found["model"] = onnx.printer.to_text(made.graph)
