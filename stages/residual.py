"""The example that the demos of all stages and all pages use.

It does without `from __future__ import annotations`, because generated code
repeats the annotations, and prints a type better than a string.
"""

import torch


class Residual(torch.nn.Module):
    """A block that adds its input to the output of a layer.

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
