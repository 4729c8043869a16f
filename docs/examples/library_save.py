"""Using fx: keep a graph module."""

from __future__ import annotations

import copy
import pickle
import tempfile
from pathlib import Path

import torch

import fx
from stages.residual import Residual


def main() -> None:
    """Four ways, and what comes back."""
    gm, x = fx.symbolic_trace(Residual()), torch.ones(2, 4)
    for node in gm.graph.nodes:
        node.meta["note"] = f"about {node.name}"

    again: fx.GraphModule = pickle.loads(pickle.dumps(gm))
    print("pickled: the same", torch.equal(again(x), gm(x)))
    print("         its notes", [n.meta["note"] for n in again.graph.nodes])

    clone = copy.deepcopy(gm)
    weight = gm.get_parameter("linear.weight")
    own = clone.get_parameter("linear.weight") is not weight
    print("copied:  own weights", own)

    with tempfile.TemporaryDirectory() as folder:
        torch.save(gm, Path(folder) / "gm.pt")
        loaded = torch.load(Path(folder) / "gm.pt", weights_only=False)
        print("saved:   the same", torch.equal(loaded(x), gm(x)))

        gm.to_folder(Path(folder) / "residual", "Residual")
        made = sorted(path.name for path in Path(folder, "residual").iterdir())
        print("folder: ", *made)


if __name__ == "__main__":
    main()
