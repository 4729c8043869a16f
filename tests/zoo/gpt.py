"""Language Models are Unsupervised Multitask Learners (GPT-2), 2019.

Size: Table 2, first row: 12 layers of width 768, with the vocabulary of 50,257
and the context of 1,024 of section 2.3; the output layer's weight is the
embedding's. The table says 117M; the model as released has 124,439,808.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class CausalSelfAttention(nn.Module):
    """Each position attends to itself and those before: (N, T, C) to same."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.width = width
        self.heads = heads
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)
        self.attn_dropout = nn.Dropout(dropout)
        self.resid_dropout = nn.Dropout(dropout)

    def _split_heads(self, x: Tensor) -> Tensor:
        n, t, _ = x.size()
        return x.view(n, t, self.heads, -1).transpose(1, 2)

    def forward(self, x: Tensor, future: Tensor) -> Tensor:
        query, key, value = self.c_attn(x).split(self.width, dim=2)
        query = self._split_heads(query)
        key = self._split_heads(key)
        value = self._split_heads(value)
        scores = query @ key.transpose(-2, -1)
        scores = scores / math.sqrt(self.width // self.heads)
        scores = scores.masked_fill(future, float("-inf"))
        weights = self.attn_dropout(F.softmax(scores, dim=-1))
        y = (weights @ value).transpose(1, 2).contiguous().view(x.size())
        x = self.resid_dropout(self.c_proj(y))
        return x


class MLP(nn.Module):
    """Four times as wide within, with the tanh form of GELU."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.c_fc = nn.Linear(width, 4 * width)
        self.c_proj = nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = F.gelu(self.c_fc(x), approximate="tanh")
        x = self.dropout(self.c_proj(x))
        return x


class Block(nn.Module):
    """Attention and MLP, each normalised before and added to its input."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = CausalSelfAttention(width, heads, dropout)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = MLP(width, dropout)

    def forward(self, x: Tensor, future: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x), future)
        x = x + self.mlp(self.ln_2(x))
        return x


class GPT2(nn.Module):
    """Token numbers (N, T), T at most `context`, to logits (N, T, words)."""

    def __init__(
        self,
        words: int = 50_257,
        context: int = 1024,
        width: int = 768,
        depth: int = 12,
        heads: int = 12,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.wte = nn.Embedding(words, width)
        self.wpe = nn.Embedding(context, width)
        self.drop = nn.Dropout(dropout)
        self.h = nn.ModuleList(
            Block(width, heads, dropout) for _ in range(depth)
        )
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, words, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, tokens: Tensor) -> Tensor:
        _, t = tokens.size()
        positions = torch.arange(t, device=tokens.device)
        future = positions > positions.unsqueeze(1)
        x: Tensor = self.drop(self.wte(tokens) + self.wpe(positions))
        for block in self.h:
            x = block(x, future)
        x = self.lm_head(self.ln_f(x))
        return x


def gpt2() -> GPT2:
    """GPT-2 small."""
    return GPT2()
