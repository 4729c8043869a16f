"""The one example that every stage's demo and every page comes back to.

Its annotations are evaluated (no `from __future__ import annotations`): the
traced code repeats them, and types read better there than their spelling.
"""

import torch


class Residual(torch.nn.Module):
    """A block that adds its input to what a layer makes of it.

    Its graph has five nodes: x, linear, add, relu, output.
    """

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """relu(linear(x) + x).

        Args:
            x: of shape (*, 4).
        """
        y: torch.Tensor = self.linear(x)
        return torch.relu(y + x)
