"""Passes: fold each BatchNorm into the convolution or linear layer before it.

In evaluation mode a BatchNorm multiplies by and adds numbers that never change.
A layer with other weights can do the same, so the two become one module.  For
a ResNet this takes out more than a quarter of the nodes.

The new module computes the same up to rounding.  Where folding would change
anything else, the BatchNorm stays.
"""

from __future__ import annotations

from collections import Counter
from itertools import accumulate, chain, count
from typing import Final

from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

from ..extra.effects.effects import classify, places_in
from ..extra.effects.modules import is_torchs
from ..graph_module import GraphModule
from ..node import Node
from ..rewriting.node_rules import Rewriter, rewrite
from ..use_def import dotted_path
from ..use_def.values import AnyValue
from .utils.call_order import may_write_attributes

LAYER_AND_NORM: Final = frozenset(
    (
        (nn.Conv1d, nn.BatchNorm1d),
        (nn.Conv2d, nn.BatchNorm2d),
        (nn.Conv3d, nn.BatchNorm3d),
        (nn.Linear, nn.BatchNorm1d),
    )
)
"""The classes of the two modules; a subclass may compute something else."""

_WRITE_NOTHING: Final = frozenset(chain.from_iterable(LAYER_AND_NORM))
"""Classes whose calls change nothing in evaluation mode."""


def fold_conv_bn(gm: GraphModule) -> int:
    """Fold each BatchNorm into the convolution or linear layer before it.

    The layer is a convolution, or linear if shapes are noted, as `ShapeProp`
    does, that say that its result has two dimensions: of three, the BatchNorm
    would count along the second, and the layer along the third. A convolution
    is taken to be of a batch, unless its result is noted with two dimensions.

    A BatchNorm stays if it is in training mode or keeps no statistics, if it
    or the layer has hooks, if the layer's result has other users, or if the
    graph may write into the memory of the two: it fetches a tensor there (to
    clamp a weight in each call, say), or calls a module that has one and is
    not known to be pure. (A hook may look at the value between the two
    modules, which is gone after folding.) The new
    layer gets the path of the old one; if that is still used, a path at the
    root, such as `body_0_folded`. Modules that nothing uses any more are
    removed.

    Args:
        gm: the module, changed in place and recompiled. Weights that change
            afterwards have no effect on it: run the pass on a new trace.

    Returns:
        How many BatchNorms were folded.

    If it raises, `gm` is as it was.

    Cost: O(nodes + tensors of the modules + weights that are folded).

    torch.fx: experimental/optimization.py, fuse; it works on a copy, as
    `fx.experimental.optimization.fuse` does, and a model in training is an
    AssertionError.
    """
    written = _written(gm)
    used = Counter(str(n.target) for n in gm.graph.find_nodes(op="call_module"))
    for node in gm.graph.find_nodes(op="get_attr"):
        used[str(node.target).rpartition(".")[0]] += 1

    # The call of the layer stays where it is, and calls another module. So it
    # does not matter what is written between the two calls: only the BatchNorm
    # has the result of the layer.
    @rewrite("call_module")
    def fold(node: Node, rewriter: Rewriter) -> None:
        call = node.args[0] if node.args else None
        if not isinstance(call, Node) or call.op != "call_module":
            return
        layer = dotted_path.find(gm, str(call.target))
        norm = dotted_path.find(gm, str(node.target))
        alone = [*call.users] == [node] and node.all_input_nodes == [call]
        if alone and _can_be_folded(layer, norm, call, written):
            call.target = _new_path(gm, str(call.target), used)
            gm.add_submodule(call.target, _fused(layer, norm))
            rewriter.replace(node, call)

    folded = fold(gm)
    if folded:
        gm.delete_all_unused_submodules()
    return folded


def _written(gm: GraphModule) -> set[int]:
    """The memory of attributes and modules that the graph may write."""
    written: set[int] = set()
    fetched = gm.graph.find_nodes(op="get_attr")
    if fetched and may_write_attributes(gm.graph):
        for node in fetched:
            written |= places_in(dotted_path.find(gm, str(node.target)))
    for node in gm.graph.find_nodes(op="call_module"):
        module = dotted_path.find(gm, str(node.target))
        known = type(module) in _WRITE_NOTHING and not module.training
        if not (known and is_torchs(module)) and classify(node).kind != "pure":
            written |= places_in(module)
    return written


def _can_be_folded(
    layer: AnyValue, norm: AnyValue, call: Node, written: set[int]
) -> bool:
    """Whether a BatchNorm multiplies by and adds constants only.

    Args:
        layer: the module before it.
        norm: the BatchNorm.
        call: the call of the layer.
        written: the memory that is not constant.
    """
    if (type(layer), type(norm)) not in LAYER_AND_NORM:
        return False
    if norm.training or norm.running_var is None:
        return False
    if norm.weight is None and isinstance(layer, nn.Linear):
        return False  # torch has no formula for it
    if norm.num_features != len(layer.weight):
        return False  # it counts along another dimension
    for module in (layer, norm):
        if not is_torchs(module):
            return False
        if written and not written.isdisjoint(places_in(module)):
            return False
    noted = call.meta.get("val", call.meta.get("tensor_meta"))
    is_flat = len(getattr(noted, "shape", ())) == 2
    return is_flat == isinstance(layer, nn.Linear)


def _new_path(gm: GraphModule, old: str, used: Counter[str]) -> str:
    """The old path; if more uses what is there, a free one at the root.

    In `used` is counted how often each module is called or asked for a tensor.
    """
    if (
        sum(used[path] for path in accumulate(old.split("."), "{}.{}".format))
        == 1
    ):
        return old
    used[old] -= 1
    name = old.replace(".", "_")  # beside it, a Sequential would call it, too
    endings = chain([""], map("_{}".format, count(1)))
    paths = (f"{name}_folded{ending}" for ending in endings)
    return next(path for path in paths if not dotted_path.exists(gm, path))


def _fused(layer: AnyValue, norm: AnyValue) -> nn.Module:
    """A new layer that does both."""
    is_linear = isinstance(layer, nn.Linear)
    fuse: AnyValue = fuse_linear_bn_eval if is_linear else fuse_conv_bn_eval
    # Training state does not matter to a layer, but fusing asks for it.
    was_training = layer.training
    try:
        fused: nn.Module = fuse(layer.eval(), norm)
    finally:
        layer.train(was_training)
    return fused.train(was_training)
