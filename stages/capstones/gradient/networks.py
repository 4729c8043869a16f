"""Networks of the zoo, written with the operators of the capstone.

A program takes what the embeddings give, and each weight, as its inputs.  The
other networks of the zoo convolve, pool, or have the GELU of the error
function, for which there is no operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

import torch
from torch import Tensor

from tests.zoo import ZOO, Network, borrow

Tensors: TypeAlias = tuple[Tensor, ...]

Layer: TypeAlias = Any
"""A module, of whose submodules nothing is known."""

HEADS: Final = 12
DEPTH: Final = 4
"""How many of GPT-2's twelve blocks there are; the others are the same."""

ROOT_2_PI: Final = 0.7978845608028654
"""The root of 2/pi, for GELU."""


class Program(NamedTuple):
    """A network as a function of its weights.

    Attributes:
        function: gives what the network does.
        inputs: its inputs and weights.
        wanted: what the network gives for them.
    """

    function: Callable[..., Tensor]
    inputs: Tensors
    wanted: Tensor


def program_of(name: str) -> Program:
    """A network of `NETWORKS`, with the example inputs of the zoo."""
    network = next(one for one in ZOO if one.name == name)
    with borrow(network, training=False) as model, torch.no_grad():
        return NETWORKS[name](network, model)


def loss(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Half the sum of the squares of what a function gives."""

    def program(*inputs: Tensor) -> Tensor:
        found = function(*inputs)
        return torch.sum(found * found) / 2

    return program


def _normed(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Normalise the last dimension, of 768."""
    x = x - torch.sum(x, -1, keepdim=True) / 768
    variance = torch.sum(x * x, -1, keepdim=True) / 768
    return x / torch.exp(torch.log(variance + 1e-5) / 2) * weight + bias


def _block(x: Tensor, past: Tensor, weights: Iterator[Tensor]) -> Tensor:
    """A block of GPT-2.

    Heads are a dimension of the weights, (12, 768, 64), and so of the values.
    What the heads give is added, which does what joining them and then one
    weight for all would.
    """
    y = _normed(x, next(weights), next(weights))
    query, key, value = (y @ next(weights) + next(weights) for _ in range(3))
    scores = torch.exp(query @ torch.transpose(key, -2, -1) / 8) * past
    mixed = scores / torch.sum(scores, -1, keepdim=True) @ value
    heads = torch.sum(mixed @ next(weights), 1, keepdim=True)
    x = x + heads + next(weights)
    y = _normed(x, next(weights), next(weights))
    y = y @ next(weights) + next(weights)
    y = y * (1 + torch.tanh(ROOT_2_PI * (y + 0.044715 * y * y * y))) / 2
    return x + (y @ next(weights) + next(weights))


def _gpt2(x: Tensor, past: Tensor, *weights: Tensor) -> Tensor:
    """The first blocks of GPT-2, and the normalisation behind them."""
    rest = iter(weights)
    for _ in range(DEPTH):
        x = _block(x, past, rest)
    return _normed(x, next(rest), next(rest))


def _both(layer: Layer) -> Tensors:
    """The weight, so that `x @ weight` applies it, and the bias."""
    return layer.weight.detach().t(), layer.bias.detach()


def _block_weights(block: Layer) -> Iterator[Tensor]:
    """The weights of a block, in the order of their use."""
    yield from _both(block.ln_1)
    weight, bias = _both(block.attn.c_attn)
    for one, other in zip(weight.chunk(3, 1), bias.chunk(3), strict=True):
        yield one.reshape(-1, HEADS, 64).transpose(0, 1)
        yield other.view(HEADS, 1, 64)
    weight, bias = _both(block.attn.c_proj)
    yield weight.reshape(HEADS, 64, -1)
    yield bias
    for layer in (block.ln_2, block.mlp.c_fc, block.mlp.c_proj):
        yield from _both(layer)


def _gpt2_program(network: Network, model: Layer) -> Program:
    """GPT-2 from the embedding on, on tokens (1, T)."""
    (tokens,) = network.inputs()
    length = tokens.shape[1]
    x = model.wte(tokens) + model.wpe(torch.arange(length))
    past = torch.ones(length, length).tril()
    wanted = x
    for block in model.h[:DEPTH]:
        wanted = block(wanted, past == 0)
    weights = [
        one for block in model.h[:DEPTH] for one in _block_weights(block)
    ]
    inputs = (x[:, None], past, *weights, *_both(model.ln_f))
    return Program(_gpt2, inputs, model.ln_f(wanted)[:, None])


def _dlrm(dense: Tensor, sparse: Tensor, *weights: Tensor) -> Tensor:
    """DLRM, on numbers (N, 1, 13) and vectors (N, 27, 16), the first zeros.

    The weight of the interaction comes as one for each row of products, which
    a row of `rows`, the unit matrix, selects.
    """
    rest = iter(weights)
    for _ in range(4):
        dense = torch.relu(dense @ next(rest) + next(rest))
    vectors = next(rest) @ dense + sparse
    products = vectors @ torch.transpose(vectors, 1, 2)
    x = dense @ next(rest) + next(rest)
    for _ in range(27):
        x = x + next(rest) @ products @ next(rest)
    for _ in range(2):
        x = torch.relu(x) @ next(rest) + next(rest)
    return torch.sigmoid(x)


def _dlrm_program(network: Network, model: Layer) -> Program:
    """DLRM behind its tables."""
    dense, indices, offsets = network.inputs()
    found = [
        table(one, other)
        for table, one, other in zip(
            model.tables, indices, offsets, strict=True
        )
    ]
    sparse = torch.stack([torch.zeros_like(found[0]), *found], 1)
    weights: list[Tensor] = []
    for layer in model.bottom[::2]:
        weights += _both(layer)
    weights.append(torch.eye(27)[:, :1])
    first, bias = _both(model.top[0])
    weights += first[:16], bias
    pairs = torch.zeros(27, 27, len(bias))
    pairs[model.rows, model.columns] = first[16:]
    for row, pair in zip(torch.eye(27), pairs, strict=True):
        weights += row[None], pair
    for layer in model.top[2::2]:
        weights += _both(layer)
    wanted = model(dense, indices, offsets)[:, None]
    return Program(_dlrm, (dense[:, None], sparse, *weights), wanted)


NETWORKS: Final[dict[str, Callable[[Network, Layer], Program]]] = {
    "dlrm": _dlrm_program,
    "gpt2": _gpt2_program,
}
