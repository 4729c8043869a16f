"""ExecuTorch: exported programs lowered, changed by a pass, and written."""

from __future__ import annotations

from typing import Final

import torch
from executorch.exir import EdgeProgramManager, to_edge
from executorch.exir.dialects._ops import ops
from executorch.exir.pass_base import ExportPass

from fx.use_def.values import AnyValue
from tests.clients.record import Notes, case
from tests.clients.small import EXPORTS, NETWORKS

PACKAGES = ("executorch", "torch")

EDGE: Final[AnyValue] = ops.edge.aten


class Clamped(ExportPass):  # type: ignore[misc]
    """Each relu is a clamp."""

    def call_operator(self, op: AnyValue, *given: AnyValue) -> AnyValue:
        """Record the call, or another."""
        if op == EDGE.relu.default:
            op, given = EDGE.clamp.default, ((*given[0], 0.0), *given[1:])
        return super().call_operator(op, *given)


def note(found: Notes, edge: EdgeProgramManager) -> None:
    """Note the program, and the bytes that are written."""
    found["graph"] = edge.exported_program().graph
    written = edge.to_executorch()
    found["bytes"] = torch.tensor([*written.buffer], dtype=torch.uint8)
    found["planned"] = str(written.exported_program().graph)


def main() -> None:
    """Write each network as it is lowered, and after a pass."""
    for name, (make, x) in NETWORKS.items():
        for how, dynamic in EXPORTS.items():
            with case(f"{name}, {how}") as found:
                exported = torch.export.export(
                    make().eval(), (x,), dynamic_shapes=(dynamic,)
                )
                note(found, to_edge(exported))
                changed = to_edge(exported).transform([Clamped()])
                note(found.setdefault("after a pass", {}), changed)
