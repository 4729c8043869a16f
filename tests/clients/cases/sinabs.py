"""sinabs: spiking networks to NIR by a trace, and back by a graph."""

from __future__ import annotations

from functools import partial
from typing import Final

import nir
import nirtorch
import sinabs.layers as sl
import sinabs.nir
import torch
from sinabs import from_torch
from torch import nn
from torch.fx import GraphModule

from fx.use_def.values import AnyValue
from tests.clients.record import case, module

PACKAGES = ("nirtorch", "sinabs", "torch")

TO: Final = dict.fromkeys(
    (nn.Conv2d, nn.Flatten, nn.Linear, sl.IAFSqueeze, sl.SumPool2d),
    sinabs.nir._extract_sinabs_module,
)
BACK: Final = dict.fromkeys(
    (nir.Affine, nir.Conv2d, nir.Flatten, nir.IF, nir.SumPool2d),
    partial(sinabs.nir._import_sinabs_module, batch_size=1, num_timesteps=None),
)


def _spiking() -> AnyValue:
    """A network with its activations made spiking."""
    net = nn.Sequential(
        *(nn.Conv2d(1, 4, 3), nn.ReLU(), sl.SumPool2d(2), nn.Flatten()),
        *(nn.Linear(36, 10), nn.ReLU()),
    )
    made: AnyValue = from_torch.from_model(
        net, input_shape=(1, 8, 8), batch_size=1
    )
    return made.spiking_model


def _nodes(graph: AnyValue) -> list[str]:
    """The nodes and edges of a NIR graph."""
    kinds = [f"{n}: {type(v).__name__}" for n, v in graph.nodes.items()]
    return sorted(kinds) + sorted(map(str, graph.edges))


def main() -> None:
    """To NIR by a run and by a trace; back by nirtorch's graph."""
    torch.manual_seed(0)
    x, net = 9 * torch.rand(5, 1, 8, 8), _spiking()
    with case("to NIR") as found:
        found["nodes"] = _nodes(sinabs.nir.to_nir(net, x))
    with case("to NIR by a trace") as found:
        found["nodes"] = _nodes(nirtorch.torch_to_nir(net, TO, {}))
    with case("built from NIR") as found, torch.no_grad():
        graph = sinabs.nir.to_nir(net, x)
        made = nirtorch.nir_to_torch(graph, BACK)
        assert isinstance(made, GraphModule)
        module(found, made, x)
