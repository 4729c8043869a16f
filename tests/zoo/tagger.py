"""End-to-end Sequence Labeling via Bi-directional LSTM-CNNs-CRF, 2016.

Size: Table 1 (30 character filters of window 3, LSTM state 200, dropout 0.5),
the network that Table 3 calls BLSTM-CNN: without the CRF, whose decoding loops
over the data. 45 part-of-speech tags, the 400,000 words of GloVe 6B in 100
dimensions; the characters, which the paper does not count, are here the 94
printable ones of ASCII. Two more rows each are padding and unknown. By hand:

    words           400,002 x 100                             40,000,200
    characters           96 x 30                                   2,880
    filters              30 x 30 x 3 + 30                          2,730
    LSTM       2 x 4 x (130 x 200 + 200 x 200 + 2 x 200)         531,200
    tags                400 x 45 + 45                             18,045
                                                              40,555,055
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class CharacterCNN(nn.Module):
    """The spelling of each word, (N, T, L), to its features, (N, T, D)."""

    def __init__(self, characters: int, width: int, dropout: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding(characters, width, padding_idx=0)
        self.conv = nn.Conv1d(width, width, kernel_size=3, padding=1)
        self.dropout = dropout

    def forward(self, spelling: Tensor) -> Tensor:
        n, t, length = spelling.shape
        x = self.embedding(spelling.view(n * t, length))
        x = F.dropout(x, self.dropout, training=self.training)
        x = self.conv(x.transpose(1, 2))
        x, _ = torch.max(x, dim=2)
        return torch.tanh(x).view(n, t, -1)


class BLSTMCNN(nn.Module):
    """Words (N, T) and their spelling (N, T, L) to log p of tags (N, T, K)."""

    def __init__(
        self,
        words: int = 400_002,
        characters: int = 96,
        tags: int = 45,
        word_width: int = 100,
        character_width: int = 30,
        state: int = 200,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(words, word_width, padding_idx=0)
        self.characters = CharacterCNN(characters, character_width, dropout)
        self.dropout_in = nn.Dropout(dropout)
        self.lstm = nn.LSTM(
            word_width + character_width,
            state,
            batch_first=True,
            bidirectional=True,
        )
        self.dropout_out = nn.Dropout(dropout)
        self.tags = nn.Linear(2 * state, tags)

    def forward(self, words: Tensor, spelling: Tensor) -> Tensor:
        x = torch.cat((self.words(words), self.characters(spelling)), dim=-1)
        x, (_, _) = self.lstm(self.dropout_in(x))
        return F.log_softmax(self.tags(self.dropout_out(x)), dim=-1)


def blstm_cnn() -> BLSTMCNN:
    """The part-of-speech tagger of Table 3."""
    return BLSTMCNN()
