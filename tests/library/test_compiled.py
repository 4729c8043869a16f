"""Traced networks are compiled and exported by torch, as eager ones are.

Here are small networks; `make clients` has those of the zoo.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

import fx
from fx.use_def.values import AnyValue
from tests.compiled import (
    BACKENDS,
    EXPORT,
    HAS_COMPILER,
    Step,
    compare,
    compiled,
    step,
)
from tests.zoo.bert import Bert
from tests.zoo.resnet import BasicBlock, ResNet

Made = tuple[nn.Module, tuple[torch.Tensor, ...]]


def resnet() -> Made:
    """Skip connections, batch norms that write, ReLUs in place."""
    model = ResNet(BasicBlock, (1, 1, 1, 1), 10)
    return model, (torch.randn(2, 3, 32, 32),)


def bert() -> Made:
    """A mask, indices, dropout, and two results."""
    words = torch.randint(1, 50, (2, 8))
    mask = torch.ones_like(words)
    return Bert(50, 8, 16, 2, 2, 0.1), (words, mask, torch.zeros_like(words))


class Shared(nn.Module):
    """A parameter that is used twice, one that is not, and a constant."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(7, 4)
        self.unused = nn.Parameter(torch.ones(3))
        self.scale = torch.tensor([1.0, 2.0, 3.0, 4.0])

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.table(words) * self.scale
        return torch.mm(found.flatten(0, 1), self.table.weight.t())


def shared() -> Made:
    """See Shared."""
    return Shared(), (torch.tensor([[1, 2], [3, 6]]),)


NETWORKS: dict[str, Callable[[], Made]] = {
    "resnet": resnet,
    "bert": bert,
    "shared": shared,
}

pytestmark = [
    pytest.mark.newest,
    # Compilers of torch import and warn as they like.
    pytest.mark.filterwarnings("ignore"),
]


def traced(name: str, *, training: bool) -> tuple[AnyValue, AnyValue, Step]:
    """A graph module, its inputs, and what eager execution gives."""
    torch.manual_seed(0)
    model, inputs = NETWORKS[name]()
    model.train(training)
    return fx.symbolic_trace(model), inputs, step(model, inputs)


@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize("way", [*BACKENDS, EXPORT])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_traced_network_is_compiled(
    name: str, way: str, training: bool
) -> None:
    gm, inputs, expected = traced(name, training=training)
    compare(step(compiled(gm, way, inputs), inputs), expected, exact=True)


@pytest.mark.skipif(not HAS_COMPILER, reason="inductor needs a C++ compiler")
def test_kernels_of_inductor() -> None:
    gm, inputs, expected = traced("shared", training=True)
    found = step(compiled(gm, "inductor", inputs), inputs)
    compare(found, expected, exact=False)


def test_a_rewritten_network_is_compiled_as_rewritten() -> None:
    gm, inputs, before = traced("resnet", training=True)
    for node in gm.graph.find_nodes(op="call_module"):
        if type(gm.get_submodule(node.target)) is nn.ReLU:
            with gm.graph.inserting_after(node):
                gelu = gm.graph.call_function(
                    nn.functional.gelu, (node.input_at(0),)
                )
            node.replace_all_uses_with(gelu)
            gm.graph.erase_node(node)
    gm.recompile()
    expected = step(gm, inputs)
    with pytest.raises(AssertionError):
        compare(expected, before, exact=False)
    for way in (*BACKENDS, EXPORT):
        compare(step(compiled(gm, way, inputs), inputs), expected, exact=True)
