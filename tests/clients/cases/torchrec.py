"""torchrec: its tracer, on models that look up features in tables."""

from __future__ import annotations

from typing import Final

import torch
import torchrec
from torch import nn
from torch.fx import GraphModule
from torchrec.fx import symbolic_trace
from torchrec.models import deepfm, dlrm
from torchrec.modules import crossnet, mlp

from fx.use_def.values import AnyValue
from tests.clients.record import Notes, case

PACKAGES = ("fbgemm-gpu-cpu", "torch", "torchrec")

FEATURES: Final = ("clicks", "views")


def _configured(config: AnyValue) -> list[AnyValue]:
    """A table for each feature."""
    return [
        config(
            name=name,
            embedding_dim=4,
            num_embeddings=10,
            feature_names=[name],
        )
        for name in FEATURES
    ]


def _tables(weighted: bool = False) -> AnyValue:
    """What looks features up and adds them."""
    return torchrec.EmbeddingBagCollection(
        is_weighted=weighted, tables=_configured(torchrec.EmbeddingBagConfig)
    )


def _sequences() -> AnyValue:
    """The same for sequences."""
    return torchrec.EmbeddingCollection(
        tables=_configured(torchrec.EmbeddingConfig)
    )


def _sparse(weighted: bool = False) -> AnyValue:
    """Two examples, of which each feature has as many values as it likes."""
    return torchrec.KeyedJaggedTensor.from_lengths_sync(
        keys=[*FEATURES],
        values=torch.tensor([1, 2, 3, 4, 5, 6]),
        lengths=torch.tensor([2, 0, 1, 3]),
        weights=torch.arange(6.0) if weighted else None,
    )


def _values(found: AnyValue) -> AnyValue:
    """What can be compared of a result."""
    if isinstance(found, dict):
        return {name: each.values() for name, each in found.items()}
    return found if isinstance(found, torch.Tensor) else found.values()


def _traced(found: Notes, model: nn.Module, *inputs: AnyValue) -> None:
    """Trace a model as torchrec does, and run what comes out."""
    gm = symbolic_trace(model.eval())
    assert isinstance(gm, GraphModule)
    found["graph"], found["code"] = gm.graph, gm.code
    found["result"] = _values(gm(*inputs))
    torch.testing.assert_close(found["result"], _values(model(*inputs)))


def main() -> None:
    """Trace tables, and models with them."""
    torch.manual_seed(0)
    dense = torch.rand(2, 3)
    with case("tables") as found:
        _traced(found, _tables(), _sparse())
    with case("tables with weights") as found:
        _traced(found, _tables(True), _sparse(True))
    with case("tables of sequences") as found:
        _traced(found, _sequences(), _sparse())
    with case("DLRM") as found:
        model = dlrm.DLRM(_tables(), 3, [8, 4], [8, 1])
        _traced(found, model, dense, _sparse())
    with case("DLRM with crosses") as found:
        model = dlrm.DLRM_DCN(_tables(), 3, [8, 4], [8, 1], 2, 2)
        _traced(found, model, dense, _sparse())
    with case("DeepFM") as found:
        model = deepfm.SimpleDeepFMNN(3, _tables(), 8, 4)
        _traced(found, model, dense, _sparse())
    for cross in (
        *(crossnet.CrossNet, crossnet.VectorCrossNet),
        *(crossnet.LowRankCrossNet, crossnet.LowRankMixtureCrossNet),
    ):
        with case(cross.__name__) as found:
            _traced(found, cross(3, 2), dense)
    with case("MLP") as found:
        _traced(found, mlp.MLP(3, [8, 4]), dense)
