"""Passes: fold each BatchNorm into the convolution or linear layer before it.

In evaluation mode a BatchNorm multiplies by and adds numbers that never change.
A layer with other weights can do the same, so the two become one module.
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
from ..memory.modules import foreign_code
from ..node import Node
from ..subgraph_rewriter import replace_pattern_with_filters
from ..text import dotted_path
from ..usedef.values import Value
from .utils.matcher_utils import InternalMatch

LAYER_AND_NORM: tuple[tuple[type[nn.Module], type[nn.Module]], ...] = (
    (nn.Conv1d, nn.BatchNorm1d),
    (nn.Conv2d, nn.BatchNorm2d),
    (nn.Conv3d, nn.BatchNorm3d),
    (nn.Linear, nn.BatchNorm1d),
)
"""The classes of the two modules."""


class _Pair(nn.Module):
    """The pattern: a layer, then a BatchNorm."""

    def __init__(self, layer: type[nn.Module], norm: type[nn.Module]) -> None:
        """Make one of each class; their settings do not matter."""
        super().__init__()
        make_layer: Value = layer
        make_norm: Value = norm
        self.layer = make_layer(1, 1, 1)
        self.norm = make_norm(1)

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the result of the layer."""
        normalised: Tensor = self.norm(self.layer(x))
        return normalised


def fold_conv_bn(gm: GraphModule) -> int:
    """Fold each BatchNorm that directly follows a layer into it.

    The layer is a convolution, or linear if shapes are noted, as `ShapeProp`
    does, that say that its result has two dimensions: of three, the BatchNorm
    would count along the second, and the layer along the third.

    A BatchNorm stays if it is in training mode or keeps no statistics, if it
    or the layer has hooks, or if the layer has other users. The new layer gets
    the path of the old one, with `_folded` appended if that is still used;
    modules that nothing uses any more are removed.

    Args:
        gm: the module to rewrite, in place; recompiled. Weights that change
            afterwards must be put into it, and the pass run again.

    Returns:
        How many BatchNorms were folded.

    Raises:
        As `replace_pattern`, with `gm` as it was.

    Cost: O(nodes + weights of the layers that are folded).

    torch.fx: experimental/optimization.py, fuse
    """
    folded: dict[str, str] = {}
    pairs = 0
    for layer, norm in LAYER_AND_NORM:
        done = replace_pattern_with_filters(
            gm,
            _Pair(layer, norm).eval(),
            match_filters=[_can_be_folded],
            replacement_callback=partial(_folded, folded),
            modules_by_class=True,
            carry_meta=True,
            respect_mutations=True,
        )
        pairs += len(done)
    if pairs:
        gm.delete_all_unused_submodules()
        _take_old_paths(gm, folded)
        gm.recompile()
    return pairs


def _called(match: InternalMatch) -> tuple[Node, Value, Value]:
    """The layer's node, and both modules."""
    norm, layer = match.operations()
    root = layer.graph.owning_module
    return (
        layer,
        dotted_path.find(root, str(layer.target)),
        dotted_path.find(root, str(norm.target)),
    )


def _can_be_folded(match: InternalMatch, _graph: Graph, _sought: Graph) -> bool:
    """Whether a BatchNorm multiplies by and adds constants only."""
    node, layer, norm = _called(match)
    runs_more = any(
        next(foreign_code(module), None) is not None for module in (layer, norm)
    )
    if norm.training or norm.running_var is None or runs_more:
        return False
    noted = node.meta.get("val", node.meta.get("tensor_meta"))
    is_flat = len(getattr(noted, "shape", ())) == 2
    return is_flat or not isinstance(layer, nn.Linear)


def _folded(
    folded: dict[str, str], match: InternalMatch, graph: Graph, _sought: Graph
) -> Graph:
    """The replacement: a call of a layer that does both.

    The path of the new layer, and that of the old one, are noted in `folded`.
    """
    node, layer, norm = _called(match)
    old = str(node.target)
    path = f"{old}_folded"
    for number in count(1):
        taken = path in folded
        if not taken and not dotted_path.exists(graph.owning_module, path):
            break
        path = f"{old}_folded_{number}"
    folded[path] = old
    is_linear = isinstance(layer, nn.Linear)
    fuse: Value = fuse_linear_bn_eval if is_linear else fuse_conv_bn_eval
    # Training state does not matter to a layer, but fusing asks for it.
    was_training = layer.training
    fused = fuse(layer.eval(), norm)
    layer.train(was_training)
    root = nn.Module()
    dotted_path.add_submodule(root, path, fused)
    made = Graph()
    x = made.placeholder("x")
    made.output(made.call_module(path, (x,)))
    owner: Value = root
    made.owning_module = owner
    return made


def _take_old_paths(gm: GraphModule, folded: dict[str, str]) -> None:
    """Move new layers to the paths of the old ones, as far as these are free.

    Args:
        gm: the module, without what nothing uses; not recompiled.
        folded: new path -> old path.
    """
    for node in gm.graph.find_nodes(op="call_module"):
        path = str(node.target)
        old = folded.get(path)
        if old is not None and not dotted_path.exists(gm, old):
            gm.add_submodule(old, dotted_path.find(gm, path))
            gm.delete_submodule(path)
            node.target = old
