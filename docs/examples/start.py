"""First steps: the last three of the five."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from torch.nn import functional

import fx
from fx.passes.shape_prop import ShapeProp
from stages.residual import Residual


def replace() -> None:
    gm = fx.symbolic_trace(Residual())
    found = fx.replace_pattern(
        gm,
        lambda a, b: torch.relu(a + b),
        lambda a, b: functional.gelu(a + b),
    )
    print("replaced:", len(found))
    print(fx.diff(fx.symbolic_trace(Residual()), gm))


def shapes() -> None:
    gm = fx.symbolic_trace(Residual())
    ShapeProp(gm).propagate(torch.ones(2, 4))
    for node in gm.graph.nodes:
        print(node.name, tuple(node.meta["tensor_meta"].shape))


def keep() -> None:
    gm, x = fx.symbolic_trace(Residual()), torch.ones(2, 4)
    with tempfile.TemporaryDirectory() as folder:
        fx.save(gm, Path(folder, "residual"))
        loaded = fx.load(Path(folder, "residual"))
    print("the same result:", torch.equal(loaded(x), gm(x)))
