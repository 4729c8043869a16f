"""torchvision as it is, whose marks are those of torch.fx.wrap."""

from __future__ import annotations

import hashlib

import torch

from tests.clients.cases.vision import MODELS, inputs_for, make
from tests.clients.record import case, library, module

PACKAGES = ("torchvision",)


def main() -> None:
    """Trace each model; the code is to be the same to the last letter."""
    for name in MODELS:
        with case(name) as found, torch.no_grad():
            traced = library.symbolic_trace(make(name))
            module(found, traced, inputs_for(name))
            code = hashlib.sha256(traced.code.encode())
            found["checksum of the code"] = code.hexdigest()
