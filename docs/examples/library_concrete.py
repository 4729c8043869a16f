"""Using fx: settle an input before the trace."""

from __future__ import annotations

import torch

import fx


def scaled(x: torch.Tensor, double: bool = False) -> torch.Tensor:
    """Branches on an input that is not a tensor."""
    if double:
        return x * 2
    return x


def main() -> None:
    """Trace with one answer; the result checks it."""
    gm = fx.symbolic_trace(scaled, concrete_args={"double": True})
    print(gm.code.strip())
    print(gm(torch.ones(2), True))
    try:
        gm(torch.ones(2), False)
    except AssertionError as error:
        print("AssertionError:", str(error).splitlines()[0])
