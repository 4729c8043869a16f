"""Using fx: trace a module, and look at what was recorded."""

from __future__ import annotations

import torch

import fx
from stages.residual import Residual


def main() -> None:
    """Trace Residual and show its graph in three ways."""
    module = Residual()
    gm = fx.symbolic_trace(module)
    print(gm.graph)
    print()
    print(gm.code.strip())
    print()
    for node in gm.graph.nodes:
        users = ", ".join([user.name for user in node.users])
        print(f"{node.name:7} {node.op:14} used by: {users or 'nobody'}")

    x = torch.ones(2, 4)
    print("\nsame result:", torch.equal(gm(x), module(x)))
