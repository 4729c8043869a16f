"""torchrec: its tracer on models with embeddings and jagged inputs."""

from __future__ import annotations

import torch
import torchrec
from torch import nn
from torch.fx import GraphModule
from torchrec.fx import Tracer, symbolic_trace
from torchrec.models.dlrm import DLRM
from torchrec.modules.crossnet import CrossNet
from torchrec.modules.deepfm import DeepFM
from torchrec.modules.mlp import MLP
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

from fx.usedef.values import Value
from tests.clients.record import Notes, case

PACKAGES = ("torch", "torchrec")


def collection() -> Value:
    """Two tables of embeddings."""
    return torchrec.EmbeddingBagCollection(
        device=torch.device("cpu"),
        tables=[
            torchrec.EmbeddingBagConfig(
                name=f"t{n}",
                embedding_dim=4,
                num_embeddings=10,
                feature_names=[f"f{n}"],
            )
            for n in (1, 2)
        ],
    )


def features() -> Value:
    """Two samples, with different counts of each feature."""
    return KeyedJaggedTensor.from_offsets_sync(
        keys=["f1", "f2"],
        values=torch.tensor([1, 2, 4, 5, 4, 3, 2, 9]),
        offsets=torch.tensor([0, 2, 4, 6, 8]),
    )


def _note(found: Notes, gm: Value, *inputs: Value) -> None:
    assert isinstance(gm, GraphModule)
    found["graph"] = gm.graph
    found["code"] = gm.code
    result = gm(*inputs)
    found["result"] = result.values() if hasattr(result, "values") else result


def main() -> None:
    """Trace modules whole, and with embeddings as leaves."""
    dense = torch.rand(2, 3)
    dlrm = DLRM(
        embedding_bag_collection=collection(),
        dense_in_features=3,
        dense_arch_layer_sizes=[5, 4],
        over_arch_layer_sizes=[5, 1],
    )
    leaves = ["EmbeddingBagCollection"]
    with case("DLRM, embeddings as leaves") as found:
        gm = symbolic_trace(dlrm, leaf_modules=leaves)
        _note(found, gm, dense, features())
    with case("DLRM, whole") as found:
        _note(found, symbolic_trace(dlrm), dense, features())
    with case("embeddings") as found:
        _note(found, symbolic_trace(collection()), features())
    with case("scripted") as found:
        gm = symbolic_trace(dlrm, leaf_modules=leaves)
        found["result"] = torch.jit.script(gm)(dense, features())
    for name, module, inputs in (
        ("MLP", MLP(3, [4, 2], device=torch.device("cpu")), (dense,)),
        ("CrossNet", CrossNet(3, 2), (dense,)),
        ("DeepFM", DeepFM(nn.Linear(6, 1)), ([dense, dense],)),
    ):
        with case(name) as found:
            graph = Tracer().trace(module)
            _note(found, GraphModule(module, graph), *inputs)
