"""tensordict: traces of modules that read and write named tensors."""

from __future__ import annotations

from collections.abc import Callable

import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule, TensorDictSequential
from tensordict.prototype.fx import symbolic_trace

from fx.use_def.values import AnyValue
from tests.clients.record import case
from tests.clients.small import NETWORKS

PACKAGES = ("tensordict", "torch")


def made(make: Callable[[], AnyValue]) -> AnyValue:
    """A network, and what comes after it."""
    return TensorDictSequential(
        TensorDictModule(make().eval(), ["a"], ["b"]),
        TensorDictModule(torch.nn.Tanh(), ["b"], [("c", "d")]),
        TensorDictModule(torch.nn.Bilinear(10, 10, 3), ["b", ("c", "d")], "e"),
    )


def main() -> None:
    """Trace one module, and three in a row."""
    for name, (make, x) in NETWORKS.items():
        for kind in "one", "a row":
            with case(f"{name}, {kind}") as found:
                row = made(make)
                traced = symbolic_trace(row if kind == "a row" else row[0])
                found["graph"], found["code"] = traced.graph, traced.code
                result = traced(TensorDict({"a": x}, [len(x)]))
                found["result"] = result.to_dict()
