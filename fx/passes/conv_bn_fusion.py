"""Passes: fold each BatchNorm into the convolution before it.

In evaluation mode a BatchNorm multiplies by and adds numbers that never change.
A convolution with other weights can do the same, so the two become one module.
The pass is one call of the rewriter: the pattern is two modules, matched by
their classes, and a callback makes the module that replaces both.
"""

from __future__ import annotations

from functools import partial
from itertools import count

from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

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
"""The classes of the two modules, for each number of dimensions."""


class _Pair(nn.Module):
    """The pattern: a convolution, then a BatchNorm."""

    def __init__(self, conv: type[nn.Module], norm: type[nn.Module]) -> None:
        """Make one of each class; their settings do not matter."""
        super().__init__()
        make_conv: Value = conv
        make_norm: Value = norm
        self.conv = make_conv(1, 1, 1)
        self.norm = make_norm(1)

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the result of the convolution."""
        normalised: Tensor = self.norm(self.conv(x))
        return normalised


def fold_conv_bn(gm: GraphModule) -> int:
    """Fold each BatchNorm that directly follows a convolution into it.

    A BatchNorm stays if it is in training mode, keeps no statistics or has
    hooks, or if its convolution has other users or hooks. The new convolution
    gets the path of the old one with `_folded` appended; modules that nothing
    uses any more are removed.

    Args:
        gm: the module to rewrite, in place; recompiled.

    Returns:
        How many BatchNorms were folded.

    Raises:
        As `replace_pattern`, with `gm` as it was.

    Cost: O(nodes + weights of the convolutions that are folded).

    torch.fx: experimental/optimization.py, fuse
    """
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
    return pairs


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
    """Whether a BatchNorm multiplies by and adds constants only."""
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
    for number in count(1):
        if not dotted_path.exists(graph.owning_module, path):
            break
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
