"""Using fx: keep a graph module."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path

import torch

import fx
from stages.residual import Residual


def main() -> None:
    """Two ways, and what comes back."""
    gm, x = fx.symbolic_trace(Residual()), torch.ones(2, 4)
    again: fx.GraphModule = pickle.loads(pickle.dumps(gm))
    print("pickled: the same", torch.equal(again(x), gm(x)))
    with tempfile.TemporaryDirectory() as folder:
        gm.to_folder(Path(folder) / "residual", "Residual")
        made = sorted(path.name for path in Path(folder, "residual").iterdir())
        print("folder: ", *made)
