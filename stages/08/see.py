"""What one can see once an exercise of stage 08 is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch

from fx.experimental.proxy_tensor import make_fx
from fx.graph_module import GraphModule
from fx.passes.reinplace import reinplace, reinplace_report
from stages.residual import Residual


def captured() -> GraphModule:
    """The operators that the example runs, without side effects."""
    with torch.no_grad():
        program = torch.func.functionalize(Residual())
        return make_fx(program)(torch.ones(2, 4))


def code() -> str:
    """The operators as Python."""
    return captured().code.strip()


def report() -> str:
    """Why each operator can be done in place, or not."""
    with torch.no_grad():
        return str(reinplace_report(captured(), torch.ones(2, 4)))


def in_place() -> str:
    """The code that reuses memory."""
    gm = captured()
    with torch.no_grad():
        reinplace(gm, torch.ones(2, 4))
    return gm.code.strip()


SEE: Final[dict[str, Callable[[], str]]] = {
    "Capture.run": code,
    "Storages.is_alias": report,
    "rule_1b_inputs": report,
    "rule_1c_arguments": report,
    "last-use": in_place,
}
"""An exercise -> what it can do now."""
