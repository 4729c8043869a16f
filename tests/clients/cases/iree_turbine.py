"""iree-turbine: MLIR made of what torch.export makes."""

from __future__ import annotations

import torch
from iree.turbine import aot

from tests.clients.record import case
from tests.clients.small import NETWORKS

PACKAGES = ("iree-base-compiler", "iree-turbine", "torch")


def main() -> None:
    """Import each network, and compile it for the processor."""
    for name, (make, x) in NETWORKS.items():
        with case(name) as found:
            found["module"] = aot.export(make().eval(), args=(x,)).mlir_module
        with case(f"{name}, exported") as found:
            exported = torch.export.export(make().eval(), (x,))
            found["module"] = aot.export(exported).mlir_module
