"""Using fx: a pass of forty lines that quantises the weights of a model."""

from __future__ import annotations

import torch
from torch import nn

import fx


class Int8Linear(nn.Module):
    """A linear layer whose weight has eight bits, and a scale for each row."""

    weight: torch.Tensor
    scale: torch.Tensor

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        scale = linear.weight.detach().abs().amax(1, keepdim=True) / 127
        self.register_buffer("scale", scale)
        weight = (linear.weight.detach() / scale).round().to(torch.int8)
        self.register_buffer("weight", weight)
        self.bias = linear.bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """As a linear layer, nearly."""
        weight = self.weight.to(x.dtype) * self.scale
        return nn.functional.linear(x, weight, self.bias)


def quantise(gm: fx.GraphModule) -> int:
    """Replace the linear layers that a graph calls; how many they were."""
    made: dict[str, str] = {}
    for node in gm.graph.find_nodes(op="call_module"):
        path = str(node.target)
        linear = gm.get_submodule(path)
        if isinstance(linear, nn.Linear):
            made[path] = new = f"int8_{path.replace('.', '_')}"
            gm.add_submodule(new, Int8Linear(linear))
    for node in gm.graph.find_nodes(op="call_module"):
        node.target = made.get(str(node.target), node.target)
    gm.delete_all_unused_submodules()
    gm.graph.lint()
    gm.recompile()
    return len(made)


def size(module: nn.Module) -> int:
    """The bytes of all weights."""
    held = module.state_dict().values()
    return sum(one.numel() * one.element_size() for one in held)


def main() -> None:
    """Quantise a small network, traced on an example."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 8))
    x = torch.randn(5, 64)
    gm = fx.trace(model.eval(), torch.randn(2, 64))
    want, before = gm(x), size(gm)
    print("layers:", quantise(gm), " bytes:", before, "->", size(gm))
    error = ((gm(x) - want).norm() / want.norm()).item()
    print("within 2 %:", error < 0.02, " guards:", len(gm.guards))


if __name__ == "__main__":
    main()
