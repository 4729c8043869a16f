"""coremltools: Core ML programs made of what torch.export makes."""

from __future__ import annotations

import coremltools
import torch

from tests.clients.record import case
from tests.clients.small import EXPORTS, NETWORKS

PACKAGES = ("coremltools", "torch")


def main() -> None:
    """Convert each network, for one shape and for any batch."""
    for name, (make, x) in NETWORKS.items():
        for how, dynamic in EXPORTS.items():
            with case(f"{name}, {how}") as found:
                exported = torch.export.export(
                    make().eval(), (x,), dynamic_shapes=(dynamic,)
                )
                found["program"] = coremltools.convert(
                    exported.run_decompositions({}), convert_to="milinternal"
                )
