"""Using fx: save a graph as data, and load it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch

import fx
from stages.residual import Residual


def mine(x: torch.Tensor) -> torch.Tensor:
    """A function of a user."""
    return x * 3


def main() -> None:
    """What the file says, what comes back, what is refused."""
    gm, x = fx.symbolic_trace(Residual()), torch.ones(2, 4)
    with tempfile.TemporaryDirectory() as folder:
        fx.save(gm, Path(folder) / "gm")
        lines = Path(folder, "gm", "graph.jsonl").read_text().splitlines()
        for line in lines[-4:]:
            print(line[:72])
        loaded = fx.load(Path(folder) / "gm")
        print("the same", torch.equal(loaded(x), gm(x)))

        with gm.graph.inserting_before(gm.graph.output_node()):
            gm.graph.call_function(mine, (gm.graph.output_node().args[0],))
        try:
            fx.save(gm, Path(folder) / "gm")
        except ValueError as error:
            print(str(error).partition(":")[0])
        fx.save(gm, Path(folder) / "gm", allow=(mine,))


if __name__ == "__main__":
    main()
