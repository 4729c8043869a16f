"""Using fx: keep a function whole that decides by the values of a tensor."""

from __future__ import annotations

import torch

import fx


def trimmed(x: torch.Tensor) -> torch.Tensor:
    """The columns up to the last one in which there is something."""
    last = int(x.any(0).nonzero().max())
    return x[:, : last + 1]


def program(x: torch.Tensor) -> torch.Tensor:
    """Uses the size of what `trimmed` gives."""
    short = trimmed(x)
    return short / short.shape[1]


def main() -> None:
    """The error names what to pass."""
    x = torch.tensor([[1.0, 2.0, 0.0]])
    try:
        fx.trace(program, x)
    except fx.TraceError as error:
        print(str(error).splitlines()[0])
    gm = fx.trace(program, x, leaves=[trimmed])
    print(gm.code.strip())
    print(gm(torch.tensor([[4.0, 0.0, 0.0]])))


if __name__ == "__main__":
    main()
