"""NNCF: quantisation of graphs that torch.export makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import nncf
import torch
from torch.fx import GraphModule

from fx.use_def.values import AnyValue
from tests.clients.record import Notes, case, to_ours
from tests.clients.small import Small

PACKAGES = ("nncf", "torch")


X: Final = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))


def exported() -> AnyValue:
    """The graph of the network."""
    return to_ours(torch.export.export(Small().eval(), (X,)).module())


def note(found: Notes, made: AnyValue) -> None:
    """Note what the graph calls, how often, and what comes out."""
    assert isinstance(made, GraphModule)
    calls = [str(n.target) for n in made.graph.nodes if n.op != "placeholder"]
    found["quantising calls"] = sum("quant" in call for call in calls)
    assert found["quantising calls"] or "weight" in str(
        made.state_dict().keys()
    )
    found["calls"] = sorted(calls)
    found["result"] = made(X)


def quantised(**options: AnyValue) -> AnyValue:
    """The network with calibrated quantisation."""
    dataset = nncf.Dataset([X, X + 1])
    return nncf.quantize(exported(), dataset, **options)


WAYS: Final[dict[str, Callable[[], AnyValue]]] = {
    "after training": quantised,
    "with the mixed preset": lambda: quantised(
        preset=nncf.QuantizationPreset.MIXED
    ),
    "without fast bias correction": lambda: quantised(
        fast_bias_correction=False
    ),
    "smaller weights": lambda: nncf.compress_weights(
        exported(), mode=nncf.CompressWeightsMode.INT8_ASYM
    ),
}


def main() -> None:
    """Quantise in each way."""
    for name, make in WAYS.items():
        with case(name) as found, torch.no_grad():
            note(found, make())
