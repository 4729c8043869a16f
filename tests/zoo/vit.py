"""An Image is Worth 16x16 Words (ViT), 2020.

Size: Table 1, row ViT-Base, patches of 16x16 of an image of 224x224, 1000
classes.
"""

import torch
from torch import Tensor, nn


class EncoderBlock(nn.Module):
    """Self-attention and an MLP, each normalised before: (N, L, D) to same."""

    def __init__(
        self, width: int, heads: int, mlp: int, dropout: float
    ) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.attention = nn.MultiheadAttention(
            width, heads, dropout=dropout, batch_first=True
        )
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = nn.Sequential(
            nn.Linear(width, mlp),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(mlp, width),
            nn.Dropout(dropout),
        )

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm1(x)
        y, _ = self.attention(y, y, y, need_weights=False)
        x = x + y
        x = x + self.mlp(self.norm2(x))
        return x


class VisionTransformer(nn.Module):
    """Images (N, 3, image, image) to logits (N, classes)."""

    def __init__(
        self,
        image: int = 224,
        patch: int = 16,
        width: int = 768,
        depth: int = 12,
        heads: int = 12,
        mlp: int = 3072,
        dropout: float = 0.0,
        classes: int = 1000,
    ) -> None:
        super().__init__()
        self.image = image
        self.width = width
        self.conv_proj = nn.Conv2d(3, width, patch, stride=patch)
        self.class_token = nn.Parameter(torch.zeros(1, 1, width))
        length = (image // patch) ** 2 + 1
        self.positions = nn.Parameter(torch.empty(1, length, width))
        nn.init.normal_(self.positions, std=0.02)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.Sequential(
            *(EncoderBlock(width, heads, mlp, dropout) for _ in range(depth))
        )
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.head = nn.Linear(width, classes)

    def _check(self, side: int, word: str) -> None:
        """Unlike an assert statement, torch._assert stays in a trace."""
        fits = side == self.image
        message = f"the image is not {self.image} pixels {word}"
        torch._assert(fits, message)  # type: ignore[no-untyped-call]

    def _tokens(self, x: Tensor) -> Tensor:
        """The class token and the patches, in reading order: (N, L, D)."""
        n, _, height, width = x.shape
        self._check(height, "high")
        self._check(width, "wide")
        x = self.conv_proj(x)
        x = x.reshape(n, self.width, -1).permute(0, 2, 1)
        return torch.cat([self.class_token.expand(n, -1, -1), x], dim=1)

    def forward(self, x: Tensor) -> Tensor:
        x = self._tokens(x)
        x = self.dropout(x + self.positions)
        x = self.norm(self.blocks(x))
        x = self.head(x[:, 0])
        return x


def vit_b_16() -> VisionTransformer:
    """ViT-B/16."""
    return VisionTransformer()
