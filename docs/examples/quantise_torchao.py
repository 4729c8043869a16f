"""Using fx: torchao quantises the layers that the graph says can bear it."""

from __future__ import annotations

import torch
from torch import nn
from torchao.quantization import Int8WeightOnlyConfig, quantize_

import fx


class Classifier(nn.Module):
    """A small network, with a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(64, 128)
        self.mix = nn.Linear(128, 128)
        self.head = nn.Linear(128, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The scores of ten classes."""
        x = torch.relu(self.embed(x))
        scores: torch.Tensor = self.head(torch.relu(self.mix(x)) + x)
        return scores


def rectified(gm: fx.GraphModule) -> set[str]:
    """The modules whose result goes into a ReLU and nowhere else."""
    return {
        str(node.target)
        for node in gm.graph.find_nodes(op="call_module")
        if all(user.target is torch.relu for user in node.users)
    }


def main() -> None:
    """Quantise all layers but the head."""
    torch.manual_seed(0)
    gm = fx.symbolic_trace(Classifier().eval())
    x = torch.randn(4, 64)
    with torch.no_grad():
        want = gm(x)
        chosen = rectified(gm)
        quantize_(
            gm,
            Int8WeightOnlyConfig(),
            filter_fn=lambda _, path: path in chosen,
        )
        error = ((gm(x) - want).norm() / want.norm()).item()
    print("layers:", *sorted(chosen))
    print("within 1 %:", error < 0.01)
    kinds = [type(gm.get_parameter(f"{p}.weight")) for p in ("mix", "head")]
    print("another class:", kinds[0] is not kinds[1])


if __name__ == "__main__":
    main()
