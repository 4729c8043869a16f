"""Stage 07, rewriter: fold each BatchNorm into the Conv before it, by a rule.

In evaluation a BatchNorm multiplies and adds what never changes, and so does
the convolution in front of it: one convolution with other weights does both.
The rule is a pattern of two modules, matched by their classes, and a callback
that makes the third; it is the rewriter at work on a real network.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node
from ..subgraph_rewriter import replace_pattern_with_filters
from ..text import dotted_path
from ..usedef.values import Value
from .utils.matcher_utils import InternalMatch

CONV_AND_NORM: tuple[tuple[type[nn.Module], type[nn.Module]], ...] = (
    (nn.Conv1d, nn.BatchNorm1d),
    (nn.Conv2d, nn.BatchNorm2d),
    (nn.Conv3d, nn.BatchNorm3d),
)
"""The classes that follow one another."""


@dataclass(frozen=True)
class Folded:
    """What folding has saved.

    Attributes:
        pairs: how many BatchNorms are gone.
        nodes: nodes of the graph, before and after.
        values: numbers in parameters and buffers, before and after.
    """

    pairs: int
    nodes: tuple[int, int]
    values: tuple[int, int]

    def __str__(self) -> str:
        """All of it in one line."""
        return (
            f"folded {self.pairs} BatchNorms: {self.nodes[0]} nodes became "
            f"{self.nodes[1]}, {self.values[0]:,} numbers {self.values[1]:,}"
        )


class _Pair(nn.Module):
    """The pattern: a convolution and what normalises it."""

    def __init__(self, conv: type[nn.Module], norm: type[nn.Module]) -> None:
        """Make one of each class; their settings do not matter."""
        super().__init__()
        make_conv: Value = conv
        make_norm: Value = norm
        self.conv = make_conv(1, 1, 1)
        self.norm = make_norm(1)

    def forward(self, x: Tensor) -> Tensor:
        """Normalise what the convolution gives."""
        normalised: Tensor = self.norm(self.conv(x))
        return normalised


def fold_conv_bn(gm: GraphModule) -> Folded:
    """Fold each BatchNorm that directly follows a convolution into it.

    A BatchNorm that is training, or keeps no statistics, stays; so does one
    whose convolution is read by others too, or that has hooks. The new
    convolution stands beside the old, at its path with `_folded` behind;
    modules that nothing uses any more are removed.

    Args:
        gm: the module to rewrite, in place; recompiled.

    Returns:
        What it saved.

    Raises:
        As `replace_pattern`, with `gm` as it was.

    Cost: O(nodes + weights of the convolutions that are folded).

    torch.fx: experimental/optimization.py, fuse
    """
    nodes, values = len(gm.graph.nodes), _values(gm)
    pairs = 0
    for conv, norm in CONV_AND_NORM:
        done = replace_pattern_with_filters(
            gm,
            _Pair(conv, norm).eval(),
            match_filters=[_can_be_folded],
            replacement_callback=_folded,
            modules_by_class=True,
            carry_meta=True,
        )
        pairs += len(done)
    if pairs:
        gm.delete_all_unused_submodules()
        gm.recompile()
    return Folded(pairs, (nodes, len(gm.graph.nodes)), (values, _values(gm)))


def _values(module: nn.Module) -> int:
    """How many numbers a module holds."""
    tensors = [*module.parameters(), *module.buffers()]
    return sum(tensor.numel() for tensor in tensors)


def _called(match: InternalMatch) -> tuple[Node, Value, Value]:
    """The convolution's node, and both modules."""
    norm, conv = match.operations()
    root = conv.graph.owning_module
    return (
        conv,
        dotted_path.find(root, str(conv.target)),
        dotted_path.find(root, str(norm.target)),
    )


def _can_be_folded(match: InternalMatch, _graph: Graph, _sought: Graph) -> bool:
    """Whether a BatchNorm only multiplies and adds what never changes."""
    _, conv, norm = _called(match)
    hooked = any(
        module._forward_hooks or module._forward_pre_hooks  # noqa: SLF001
        for module in (conv, norm)
    )
    return not norm.training and norm.running_var is not None and not hooked


def _folded(match: InternalMatch, graph: Graph, _sought: Graph) -> Graph:
    """The replacement: a call of the convolution that does both."""
    node, conv, norm = _called(match)
    path = f"{node.target}_folded"
    number = 0
    while dotted_path.exists(graph.owning_module, path):
        number += 1
        path = f"{node.target}_folded_{number}"
    # Training state does not matter to a convolution, but fusing asks for it.
    was_training = conv.training
    fused = fuse_conv_bn_eval(conv.eval(), norm)
    conv.train(was_training)
    root = nn.Module()
    dotted_path.add_submodule(root, path, fused)
    made = Graph()
    x = made.placeholder("x")
    made.output(made.call_module(path, (x,)))
    owner: Value = root
    made.owning_module = owner
    return made
