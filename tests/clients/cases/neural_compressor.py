"""neural-compressor: quantisation of graphs that torch.export makes."""

from __future__ import annotations

from neural_compressor.torch import export, quantization

from tests.clients.record import case
from tests.clients.small import NETWORKS

PACKAGES = ("neural-compressor-pt", "torch", "torchao")


def main() -> None:
    """Quantise each network after training, calibrated or as it runs."""
    for name, (make, x) in NETWORKS.items():
        for config in "StaticQuantConfig", "DynamicQuantConfig":
            with case(f"{name}, {config}") as found:
                exported = export.export(make().eval(), (x,))
                wanted = getattr(quantization, config)()
                prepared = quantization.prepare(exported, wanted)
                prepared(x)
                made = quantization.convert(prepared)
                found["graph"] = made.graph
                found["result"] = made(x)
