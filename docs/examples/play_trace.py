"""A model that a symbolic trace refuses, traced with an example."""

from __future__ import annotations

import torch
from torch import Tensor, nn

import fx
from fx.show.document import Page


class Padded(nn.Module):
    """Attention over a text whose length Python code looks at."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(100, 32)
        self.block = nn.TransformerEncoderLayer(32, 4, batch_first=True)

    def forward(self, text: Tensor) -> Tensor:
        batch, length = text.shape
        if length % 4:
            text = nn.functional.pad(text, (0, 4 - length % 4))
        found: Tensor = self.block(self.words(text))
        return found[:, :length].mean(1).reshape(batch, -1)


def page() -> Page:
    """The graph that fx.trace records from one example."""
    torch.manual_seed(0)
    model = Padded().eval()
    example = torch.randint(0, 100, (2, 7))
    return fx.show(fx.trace(model, example), example, title="Padded")


def main() -> None:
    model = Padded().eval()
    gm = fx.trace(model, torch.randint(0, 100, (2, 7)))
    print(gm.code)


if __name__ == "__main__":
    main()
