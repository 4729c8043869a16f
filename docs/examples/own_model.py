"""Using fx: trace a model on an example, and call it with another input."""

from __future__ import annotations

import torch
from torch import nn

import fx


class Encoder(nn.Module):
    """Asks for sizes, and for the dimensions and the dtype of a mask."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(100, 8)
        self.places = nn.Embedding(50, 8)

    def forward(
        self, ids: torch.Tensor, mask: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        """Each token has several ids, whose embeddings are added."""
        length = ids.shape[1]
        if length > 50:
            raise ValueError("too long")
        hidden = self.places(torch.arange(length, device=ids.device))
        for column in range(ids.shape[2]):
            hidden = hidden + self.embed(ids[:, :, column])
        if mask.dim() == 4:  # (batch, 1, 1, length), as attention takes it
            mask = mask[:, 0, 0]
        if mask.dtype != torch.bool:
            mask = mask > 0
        return {"hidden": hidden.masked_fill(~mask[..., None], 0)}


def main() -> None:
    """Trace it on two rows of five, and call it with three of seven."""
    model = Encoder()
    gm = fx.trace(model, torch.randint(100, (2, 5, 2)), torch.ones(2, 5))
    print(gm.code.strip(), end="\n\n")
    print(gm.guards, end="\n\n")
    inputs = torch.randint(100, (3, 7, 2)), torch.ones(3, 7)
    got, wanted = gm(*inputs)["hidden"], model(*inputs)["hidden"]
    print("right:", torch.equal(got, wanted))
    try:
        gm(torch.randint(100, (3, 7, 4)), torch.ones(3, 7))
    except fx.GuardError as error:
        print("\n".join(str(error).splitlines()[:2]))


if __name__ == "__main__":
    main()
