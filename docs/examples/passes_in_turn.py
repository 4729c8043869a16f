"""Two passes in turn, and what each run of them did."""

from __future__ import annotations

import torch

import fx
from fx.passes.dialect.common.cse_pass import CSEPass
from fx.passes.infra.pass_base import PassResult
from fx.passes.infra.pass_manager import PassManager


def program(x: torch.Tensor) -> torch.Tensor:
    """A call that is made twice; one that nobody needs is between."""
    y = torch.exp(x + 1)
    torch.sin(y)
    return y * torch.exp(x + 1)


def remove_dead_code(gm: fx.GraphModule) -> PassResult:
    """Erase the calls whose results nobody uses."""
    return PassResult(gm, gm.graph.eliminate_dead_code())


def main() -> None:
    """Run both, and print what changed."""
    run = PassManager([CSEPass(), remove_dead_code])
    run(fx.symbolic_trace(program))
    for change in run.changes:
        print(f"{change.name}: {change.added} new, {change.removed} gone")


if __name__ == "__main__":
    main()
