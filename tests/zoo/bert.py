"""BERT: Pre-training of Deep Bidirectional Transformers, 2018.

Size: BERT-base of section 3 and Table 6 (12 layers of width 768, 12 heads), its
layers being torch.nn's own. The paper says 110M; by hand, for the published
uncased model with its 30,522 word pieces:

    word pieces     30,522 x 768                      23,440,896
    positions          512 x 768                         393,216
    segments             2 x 768                           1,536
    normalisation        2 x 768                           1,536
    12 layers of                                      85,054,464
        attention   4 x (768 x 768 + 768)      2,362,368
        MLP         2 x 768 x 3,072 + 3,840    4,722,432
        normalisation          4 x 768             3,072
    pooler          768 x 768 + 768                      590,592
                                                     109,482,240
"""

import torch
from torch import Tensor, nn


class Embeddings(nn.Module):
    """Words, positions and segments added: (N, T) numbers to (N, T, D)."""

    def __init__(
        self, words: int, positions: int, width: int, dropout: float
    ) -> None:
        super().__init__()
        self.word = nn.Embedding(words, width, padding_idx=0)
        self.position = nn.Embedding(positions, width)
        self.segment = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.dropout = nn.Dropout(dropout)

    def forward(self, words: Tensor, segments: Tensor | None) -> Tensor:
        x: Tensor = self.word(words) + self.position.weight[: words.size(1)]
        if segments is None:
            segments = torch.zeros_like(words)
        x += self.segment(segments)
        x = self.dropout(self.norm(x))
        return x


class Bert(nn.Module):
    """Words (N, T) to a vector for each, (N, T, D), and for all, (N, D).

    Where `mask` (N, T) is 0 the words are padding: no word attends to them.
    """

    def __init__(
        self,
        words: int = 30_522,
        positions: int = 512,
        width: int = 768,
        depth: int = 12,
        heads: int = 12,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.embeddings = Embeddings(words, positions, width, dropout)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width,
                heads,
                dim_feedforward=4 * width,
                dropout=dropout,
                activation="gelu",
                layer_norm_eps=1e-12,
                batch_first=True,
            )
            for _ in range(depth)
        )
        self.pooler = nn.Linear(width, width)

    def forward(
        self, words: Tensor, mask: Tensor, segments: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        padding = mask == 0
        x = self.embeddings(words, segments)
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=padding)
        pooled = torch.tanh(self.pooler(x[:, 0]))
        return x, pooled


def bert_base() -> Bert:
    """BERT-base, uncased."""
    return Bert()
