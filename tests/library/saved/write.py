"""Writes graph modules in each way to keep one: for tests of later versions.

    python -m tests.library.saved.write tests/library/saved/0.2.zip

Each module is pickled, and saved by `torch.save`, `to_folder` and `fx.save`,
beside the inputs and results that it had.  What a version has written is not
written again: it shows that a later version still reads it.
"""

from __future__ import annotations

import pickle
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

import fx
from fx.experimental.const_fold import split_const_subgraphs
from fx.experimental.proxy_tensor import make_fx
from fx.passes.reinplace import reinplace
from fx.passes.shape_prop import ShapeProp
from fx.passes.split_module import split_module

Value = Any

X = torch.tensor([[1.0, -2.0, 0.5, 3.0], [0.25, 4.0, -1.0, 2.0]])


class Kept(NamedTuple):
    """A graph module to keep.

    Attributes:
        gm: the module.
        inputs: of a call whose result is kept beside it.
        ways: how it can be kept.
    """

    gm: fx.GraphModule
    inputs: tuple[Value, ...]
    ways: tuple[str, ...] = ("pickle", "torch", "folder", "saved")


def _network() -> nn.Module:
    return nn.Sequential(
        nn.Linear(4, 3),
        nn.BatchNorm1d(3),
        nn.ReLU(),
        nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 2)),
    ).eval()


def _traced() -> Kept:
    gm = fx.symbolic_trace(_network())
    ShapeProp(gm).propagate(X)
    gm.meta["note"] = {"of": ["a", (1, None)]}
    return Kept(gm, (X,))


def _checked() -> Kept:
    """A check, constants of torch, a default, and a result with keys."""

    def f(x: Value, y: Value, scale: Value = 2) -> Value:
        check: Value = torch._assert
        check(x.dim() == 2, "a matrix")
        z = x[:, 1:3].to(torch.float64) * scale + y
        return {"z": z, "more": torch.cat([z, z], dim=0), "d": x.device}

    return Kept(fx.symbolic_trace(f), (X, 1.5))


def _nested() -> Kept:
    def f(pair: Value, named: Value, none: Value) -> Value:
        return pair[0] + named["a"] * pair[1][0]

    gm = fx.symbolic_trace(
        f,
        concrete_args={
            "pair": (fx.PH, [fx.PH]),
            "named": {"a": fx.PH},
            "none": None,
        },
    )
    return Kept(gm, ((X, [X + 1]), {"a": X}, None))


def _captured() -> Kept:
    def f(x: Value) -> Value:
        y = torch.ops.aten.add.Tensor(x, 1)
        return torch.ops.aten.relu.default(torch.ops.aten.mul.Tensor(y, 3))

    gm = make_fx(f)(X)
    return Kept(reinplace(gm, X), (X,))


def _in_parts() -> Kept:
    gm = fx.symbolic_trace(_network())
    order = {node: index for index, node in enumerate(gm.graph.nodes)}
    parts = split_module(gm, gm, lambda node: order[node] // 3)
    return Kept(parts, (X,))


class Folding(nn.Module):
    """A product of weights, which is folded."""

    def __init__(self) -> None:
        """Make the weights."""
        super().__init__()
        self.a = nn.Parameter(torch.eye(4) * 2, requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run it."""
        return x + (self.a @ self.a).sum(0)


def _folded() -> Kept:
    ways = ("pickle", "torch")
    return Kept(split_const_subgraphs(Folding()), (X,), ways)


KEPT: dict[str, Callable[[], Kept]] = {
    "traced": _traced,
    "checked": _checked,
    "nested": _nested,
    "captured": _captured,
    "in_parts": _in_parts,
    "folded": _folded,
}
"""Name -> makes the module."""


def write(folder: Path) -> Iterator[str]:
    """Write all into a folder; what could not be written is a line each."""
    for name, make in KEPT.items():
        torch.manual_seed(0)
        kept = make()
        into = folder / name
        into.mkdir(parents=True, exist_ok=True)
        with torch.no_grad():
            result = kept.gm(*kept.inputs)
        torch.save((kept.inputs, result), into / "call.pt")
        for way in kept.ways:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of modules as pickles
                    WAYS[way](kept.gm, into / way)
            except Exception as error:
                yield f"{name}, {way}: {error}"


def _pickle(gm: fx.GraphModule, path: Path) -> None:
    path.write_bytes(pickle.dumps((gm, gm.graph)))


WAYS: dict[str, Callable[[fx.GraphModule, Path], object]] = {
    "pickle": _pickle,
    "torch": torch.save,
    "folder": lambda gm, path: gm.to_folder(path, "Kept"),
    "saved": fx.save,
}
"""How a graph module is kept -> the function that does it."""


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        print(*write(Path(made)), sep="\n")
        shutil.make_archive(sys.argv[1].removesuffix(".zip"), "zip", made)
