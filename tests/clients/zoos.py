"""Models of a zoo, traced by the library that is tried, and timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import torch
from torch import nn

from tests.clients.record import SECONDS, case, library


def trace_all(
    models: Mapping[str, Callable[[], nn.Module]], device: str = "meta"
) -> None:
    """Trace each model, without weights; a case for each, with its graph.

    Args:
        models: name -> what makes the model.
        device: where it is made.
    """
    for name, make in models.items():
        library.symbolic_trace(nn.ReLU())
        with case(name) as found:
            with torch.device(device):
                model = make().eval()
            start = time.process_time()
            gm = library.symbolic_trace(model)
            found[SECONDS] = str(time.process_time() - start)
            found["graph"] = gm.graph
            found["code"] = gm.code
