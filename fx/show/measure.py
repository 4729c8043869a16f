"""Passes: what is known of the value of each node, for a page about a graph.

Shapes come from a run on tensors without data, so that a large model takes no
memory.  Looking at a model must not change it: neither the `meta` of its graph,
nor the statistics of a BatchNorm in training.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Final

import torch

from ..graph_module import GraphModule
from ..node import Node
from ..passes.profiling import Profiler
from ..passes.shape_prop import ShapeProp
from ..torch_private.fake_tensors import FakeTensorMode
from ..torch_private.pytree import pytree
from ..use_def.values import AnyValue
from .describe import Facts

__all__ = ["measure"]

_LONGEST: Final = 300
RUNS: Final = 3
"""How often the module is run to take times.

The least time of a node counts, which other programs disturbed least.
"""


def measure(gm: GraphModule, inputs: Sequence[AnyValue], times: bool) -> Facts:
    """Find out about the values of a graph; all that is given stays as it is.

    Args:
        gm: the module.
        inputs: its inputs; without any, what `meta` has is taken.
        times: run the module on the inputs, to take times.

    Cost: one run without data, and with `times` three with data.
    """
    nodes = [*gm.graph.nodes]
    problem = ""
    if inputs:
        # Shapes are written into the meta of a copy, whose tensors are fake,
        # so that buffers stay as they are.
        shadow = GraphModule(gm, copy.deepcopy(gm.graph))
        for node in shadow.graph.nodes:
            node.meta = {}
        try:
            mode = FakeTensorMode(allow_non_fake_inputs=True)
            ShapeProp(shadow, mode).propagate(*inputs)
        except Exception as error:
            problem = _described(error)
        metas = [node.meta for node in shadow.graph.nodes]
    else:
        metas = [node.meta for node in nodes]
    values = {
        node: meta.get("val", meta.get("tensor_meta", meta.get("type")))
        for node, meta in zip(nodes, metas, strict=True)
    }
    seconds: dict[Node, float] = {}
    if times:
        try:
            seconds = _seconds(gm, inputs)
        except Exception as error:
            problem = problem or _described(error)
    return Facts(values, seconds, problem)


def _described(error: Exception) -> str:
    """What the page says of an error."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:_LONGEST]}"


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    """A copy that shares neither memory nor gradients with a tensor."""
    return tensor.detach().clone()


def _seconds(gm: GraphModule, inputs: Sequence[AnyValue]) -> dict[Node, float]:
    """The least time of each node in a few runs of a copy."""
    least: dict[Node, float] = {}
    shadow = copy.deepcopy(gm)
    taken = pytree.tree_map_only(torch.Tensor, _copied, tuple(inputs))
    nodes = dict(zip(shadow.graph.nodes, gm.graph.nodes, strict=True))
    profiler = Profiler(shadow)
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        for _ in range(RUNS):
            profiler.run(*taken)
            for record in profiler.records:
                node = nodes[record.node]
                known = least.get(node, record.seconds)
                least[node] = min(known, record.seconds)
    return least
