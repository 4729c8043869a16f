"""Using fx: trace a model on an example, and call it with another input."""

from __future__ import annotations

import torch
from torch import nn

import fx


class Encoder(nn.Module):
    """Asks for sizes, for a mask, and for a dtype."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(100, 8)
        self.places = nn.Embedding(50, 8)
        self.norm = nn.LayerNorm(8)

    def forward(
        self, ids: torch.Tensor, mask: torch.Tensor | None = None
    ) -> dict[str, torch.Tensor]:
        """As in most models: a position for each token, and a mask."""
        batch, length = ids.shape
        if length > 50:
            raise ValueError("too long")
        places = torch.arange(length, device=ids.device)
        hidden = self.norm(self.embed(ids) + self.places(places))
        if mask is None:
            mask = torch.ones(batch, length, dtype=torch.bool)
        elif mask.dtype != torch.bool:
            mask = mask > 0
        return {"hidden": hidden.masked_fill(~mask[..., None], 0)}


def main() -> None:
    """Trace it on two rows of five, and call it with three of seven."""
    model = Encoder()
    gm = fx.trace(model, torch.randint(100, (2, 5)))
    print(gm.code.strip(), end="\n\n")
    print(gm.guards, end="\n\n")
    ids = torch.randint(100, (3, 7))
    print("right:", torch.equal(gm(ids)["hidden"], model(ids)["hidden"]))
    try:
        gm(torch.randint(100, (1, 60)))
    except fx.GuardError as error:
        print("\n".join(str(error).splitlines()[:2]))


if __name__ == "__main__":
    main()
