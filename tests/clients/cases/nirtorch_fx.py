"""nirtorch, and norse through it: spiking networks as NIR graphs, and back."""

from __future__ import annotations

import nir
import nirtorch
import norse.torch as norse
import torch
from torch import nn

from fx.use_def.values import AnyValue
from tests.clients.record import case

PACKAGES = ("nirtorch", "norse", "torch")


def _plain() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))


def _nodes(graph: AnyValue) -> list[str]:
    """The nodes and edges of a NIR graph."""
    kinds = [f"{n}: {type(v).__name__}" for n, v in graph.nodes.items()]
    return sorted(kinds) + sorted(map(str, graph.edges))


def _linear(module: AnyValue) -> AnyValue:
    return nir.Affine(
        weight=module.weight.detach().numpy(), bias=module.bias.detach().numpy()
    )


def main() -> None:
    """To NIR by a trace, and from NIR by a graph that is built."""
    with case("traced to NIR") as found:
        made = nirtorch.torch_to_nir(_plain(), {nn.Linear: _linear})
        found["nodes"] = _nodes(made)
    with case("built from NIR") as found:
        graph = nirtorch.torch_to_nir(_plain(), {nn.Linear: _linear})
        back = nirtorch.nir_to_torch(graph, {})
        found["graph"] = back.graph
        found["code"] = back.code
        found["result"] = back(torch.ones(2, 3))
    with case("norse to NIR and back") as found:
        model = norse.SequentialState(
            nn.Linear(3, 4), norse.LIFBoxCell(), nn.Linear(4, 2)
        )
        graph = norse.to_nir(model, torch.ones(2, 3))
        found["nodes"] = _nodes(graph)
        again = norse.from_nir(graph)
        found["graph"] = again.graph
        found["result"] = again(torch.ones(2, 3))[0]
