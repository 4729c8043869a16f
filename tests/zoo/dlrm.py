"""Deep Learning Recommendation Model for Personalization and ..., 2019.

Size: section 5, the model for the Criteo Kaggle data (embeddings of 16, a
bottom MLP of 512, 256, 64, a top MLP of 512, 256), whose 26 tables hold 540
million numbers, 2 GB. `rows_at_most` shortens the longer tables, for which the
categories are hashed first, as the reference code's --max-ind-range does; here,
to 100,000 rows. By hand:

                                            as published     here
    bottom MLP   13-512-256-64-16                155,984      155,984
    top MLP      (16 + 27 x 26 / 2)-512-256-1    320,001      320,001
    tables       33,762,577 x 16             540,201,232
                 840,543 x 16                              13,448,688
                                             540,677,217   13,924,673
"""

from itertools import pairwise

import torch
from torch import Tensor, nn

# The distinct values of each of the 26 categorical features of Criteo Kaggle.
CRITEO_KAGGLE_ROWS = (
    1460, 583, 10_131_227, 2_202_608, 305, 24, 12_517, 633, 3,
    93_145, 5683, 8_351_593, 3194, 27, 14_992, 5_461_306, 10, 5652,
    2173, 4, 7_046_547, 18, 15, 286_181, 105, 142_572,
)  # fmt: skip


def _mlp(widths: tuple[int, ...], last: nn.Module) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    layers[-1] = last
    return nn.Sequential(*layers)


class DLRM(nn.Module):
    """The probability of a click, (N, 1), from numbers and categories.

    Takes `dense` (N, 13) and, for each of the 26 features, the categories of
    all samples, `indices` (26, I), and where each sample begins, `offsets`
    (26, N).
    """

    rows: Tensor
    columns: Tensor

    def __init__(
        self,
        table_rows: tuple[int, ...] = CRITEO_KAGGLE_ROWS,
        rows_at_most: int | None = None,
        width: int = 16,
    ) -> None:
        super().__init__()
        self.tables = nn.ModuleList(
            nn.EmbeddingBag(
                rows if rows_at_most is None else min(rows, rows_at_most),
                width,
                mode="sum",
            )
            for rows in table_rows
        )
        vectors = len(table_rows) + 1
        pairs = vectors * (vectors - 1) // 2
        rows, columns = torch.tril_indices(vectors, vectors, offset=-1)
        self.register_buffer("rows", rows, persistent=False)
        self.register_buffer("columns", columns, persistent=False)
        self.bottom = _mlp((13, 512, 256, 64, width), last=nn.ReLU())
        self.top = _mlp((width + pairs, 512, 256, 1), last=nn.Sigmoid())

    def _interact(self, dense: Tensor, sparse: list[Tensor]) -> Tensor:
        """The dense vector and the dot product of each pair of vectors."""
        vectors = torch.stack([dense, *sparse], dim=1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        flat = products[:, self.rows, self.columns]
        return torch.cat([dense, flat], dim=1)

    def forward(
        self, dense: Tensor, indices: Tensor, offsets: Tensor
    ) -> Tensor:
        x: Tensor = self.bottom(dense)
        sparse = [
            table(indices[k], offsets[k]) for k, table in enumerate(self.tables)
        ]
        x = self.top(self._interact(x, sparse))
        return x


def dlrm() -> DLRM:
    """The Criteo Kaggle model with tables of at most 100,000 rows."""
    return DLRM(rows_at_most=100_000)
