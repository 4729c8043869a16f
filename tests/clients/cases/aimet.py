"""AIMET: models prepared by a trace, and simulated as if quantised."""

from __future__ import annotations

import operator

from aimet_torch.batch_norm_fold import fold_all_batch_norms
from aimet_torch.model_preparer import prepare_model
from aimet_torch.quantsim import QuantizationSimModel

from tests.clients.record import case, module
from tests.clients.small import NETWORKS

PACKAGES = ("aimet-torch", "torch")


def main() -> None:
    """Prepare each network, fold norms, and simulate eight bits."""
    for name, (make, x) in NETWORKS.items():
        with case(name) as found:
            prepared = prepare_model(make().eval())
            module(found, prepared, x)
        with case(f"{name}, simulated") as found:
            prepared = prepare_model(make().eval())
            fold_all_batch_norms(prepared, x.shape, dummy_input=x)
            made = QuantizationSimModel(prepared, dummy_input=x)
            made.compute_encodings(operator.methodcaller("forward", x))
            found["result"] = made.model(x)
