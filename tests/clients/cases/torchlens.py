"""torchlens: what a model computes, with functions of torch replaced."""

from __future__ import annotations

import torch
import torchlens
from torch.fx import symbolic_trace

from tests.clients.record import case, module
from tests.clients.small import NETWORKS

PACKAGES = ("torch", "torchlens")


def main() -> None:
    """Look into each network and its trace; trace it before and afterwards."""
    for name, (make, x) in NETWORKS.items():
        for kind in "model", "trace":
            with case(f"{name}, {kind}") as found, torch.no_grad():
                model = make().eval()
                seen = symbolic_trace(model) if kind == "trace" else model
                found["layers"] = torchlens.trace(seen, x).layer_labels
                module(found, symbolic_trace(model), x)
