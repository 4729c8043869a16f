"""Coming from torch.fx: a graph of torch.fx that is edited with fx."""

from __future__ import annotations

import torch
import torch.fx

import fx
from stages.residual import Residual


def main() -> None:
    """Trace with torch.fx, replace a call with fx, and go back."""
    theirs = torch.fx.symbolic_trace(Residual())

    ours = fx.from_torch(theirs)
    fx.replace_pattern(
        ours, lambda x: torch.relu(x), lambda x: torch.clamp_min(x, 0.0)
    )

    back = fx.to_torch(ours)
    print(type(back.graph).__module__)
    print(back.code)


if __name__ == "__main__":
    main()
