"""Passes: a matcher whose pattern gives names to its nodes.

A match maps nodes of the pattern to nodes of the graph.  Who wants one of them
must first find it in the pattern.  Here the pattern names them, in a dict that
it returns as its last value:

    def pattern(x, w):
        conv = F.conv2d(x, w)
        relu = F.relu(conv)
        return relu, {"conv": conv, "relu": relu}

    for match in SubgraphMatcherWithNameNodeMap(traced).match(graph):
        match.name_node_map["conv"].meta["note"] = ...
"""

from __future__ import annotations

from typing import Unpack

from torch.utils import _pytree as torch_pytree

from ...graph import Graph
from ...graph_module import GraphModule
from ...node import Node
from ...usedef.refusals import refuse_torchs
from ...usedef.values import Value
from .matcher_utils import InternalMatch, MatchOptions, SubgraphMatcher

__all__ = ["SubgraphMatcherWithNameNodeMap"]
