"""optimum's transformations of graphs, and their reversal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch
import torch.fx
import transformers
from optimum.fx import optimization
from torch import nn
from transformers.utils import fx as transformers_fx

from fx.use_def.values import AnyValue
from tests.clients.record import Notes, case, module

PACKAGES = ("optimum",)


def _bert() -> tuple[AnyValue, tuple[AnyValue, ...]]:
    """BERT, traced by Transformers' tracer."""
    config = transformers.BertConfig(
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        vocab_size=50,
        attn_implementation="eager",
    )
    model: AnyValue = transformers.BertModel(config).eval()
    tokens = torch.arange(12).reshape(2, 6)
    names = ["input_ids", "attention_mask"]
    traced = transformers_fx.symbolic_trace(model, names)
    return traced, (tokens, torch.ones_like(tokens))


class Norms(nn.Module):
    """Layers in front of batch norms."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.bn2 = nn.BatchNorm2d(4)
        self.linear = nn.Linear(4, 4)
        self.bn1 = nn.BatchNorm1d(4)

    def forward(self, x: AnyValue) -> AnyValue:
        x = self.bn2(self.conv(x)).mean((2, 3))
        return self.bn1(self.linear(x)) / 4


def _norms() -> tuple[AnyValue, tuple[AnyValue, ...]]:
    """The norms, traced by the library itself."""
    return torch.fx.symbolic_trace(Norms().eval()), (torch.rand(2, 3, 8, 8),)


TRANSFORMATIONS: Final = (
    "MergeLinears",
    "FuseBiasInLinear",
    "ChangeTrueDivToMulByInverse",
    "FuseBatchNorm2dInConv2d",
    "FuseBatchNorm1dInLinear",
)


def _transform(
    found: Notes,
    name: str,
    make: Callable[[], tuple[AnyValue, tuple[AnyValue, ...]]],
) -> None:
    """Apply one transformation, and undo it."""
    traced, inputs = make()
    transformation: AnyValue = getattr(optimization, name)()
    changed = transformation(traced)
    found["graph"] = changed.graph
    found["code"] = changed.code
    found["result"] = list(pytree_values(changed(*inputs)))
    if isinstance(transformation, optimization.ReversibleTransformation):
        undone = transformation(changed, reverse=True)
        found["undone"] = undone.code
        found["result undone"] = list(pytree_values(undone(*inputs)))


def pytree_values(result: AnyValue) -> list[AnyValue]:
    """The tensors of a result of either model."""
    return list(result.values()) if isinstance(result, dict) else [result]


def main() -> None:
    """Each transformation on two models, and all in a row."""
    for name in TRANSFORMATIONS:
        for make in _bert, _norms:
            with case(f"{name}, {make.__name__[1:]}") as found, torch.no_grad():
                _transform(found, name, make)
    with case("compose") as found, torch.no_grad():
        traced, inputs = _norms()
        every = optimization.compose(
            optimization.MergeLinears(),
            optimization.FuseBatchNorm2dInConv2d(),
            optimization.FuseBatchNorm1dInLinear(),
            optimization.ChangeTrueDivToMulByInverse(),
        )
        module(found, every(traced), *inputs)
