"""Apache TVM: Relax made of traces, and of what torch.export makes."""

from __future__ import annotations

import torch
from torch.fx import symbolic_trace
from tvm.relax.frontend.torch import from_exported_program, from_fx

from tests.clients.record import case
from tests.clients.small import EXPORTS, NETWORKS

PACKAGES = ("apache-tvm", "torch")


def main() -> None:
    """Import each network in both ways."""
    for name, (make, x) in NETWORKS.items():
        with case(f"{name}, from_fx") as found:
            traced = symbolic_trace(make().eval())
            known = [([*x.shape], str(x.dtype).removeprefix("torch."))]
            found["module"] = from_fx(traced, known).script()
        for how, dynamic in EXPORTS.items():
            with case(f"{name}, from_exported_program, {how}") as found:
                exported = torch.export.export(
                    make().eval(), (x,), dynamic_shapes=(dynamic,)
                )
                found["module"] = from_exported_program(exported).script()
