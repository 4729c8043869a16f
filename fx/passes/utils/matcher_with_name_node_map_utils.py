"""Passes: a matcher whose pattern gives names to its nodes.

A match maps nodes of the pattern to nodes of the graph.  To look one up, you
need the node of the pattern first. Here the pattern names the nodes that you
want, in a dict that it returns as its last value:

    def pattern(x, w):
        conv = F.conv2d(x, w)
        relu = F.relu(conv)
        return relu, {"conv": conv, "relu": relu}

    for match in SubgraphMatcherWithNameNodeMap(traced).match(graph):
        match.name_node_map["conv"].meta["note"] = ...
"""

from __future__ import annotations

from typing import Unpack

from ...graph import Graph
from ...graph_module import GraphModule
from ...node import Node
from ...rewriting.templates import graph_of
from ...torch_private.pytree import pytree as torch_pytree
from ...use_def.values import AnyValue
from .matcher_utils import InternalMatch, MatchOptions, SubgraphMatcher

__all__ = ["SubgraphMatcherWithNameNodeMap"]


class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """Finds a pattern, and in each match the nodes that the pattern names.

    Attributes:
        pattern: a copy of the pattern's graph, which returns everything but
            the dict, as a flat list.
        name_node_map: name -> node of that copy.

    torch.fx: passes/utils/matcher_with_name_node_map_utils.py,
    SubgraphMatcherWithNameNodeMap; it takes the dict out of the pattern that
    it is given, so that a second matcher cannot be made of it, and needs an
    exported one.
    """

    def __init__(
        self,
        pattern_gm: GraphModule,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
        **options: Unpack[MatchOptions],
    ) -> None:
        """Prepare a pattern for matching.

        Args:
            pattern_gm: the pattern. It returns a tuple, and the last item of
                that is a dict: name -> value of the pattern. It may be a
                module of torch.fx, as torch.export makes them.
            match_output: see `SubgraphMatcher`, also for what follows.
            match_placeholder: whether an input is not matched by anything.
            remove_overlapping_matches: whether matches may share no nodes.
            ignore_literals: whether a constant is matched by any constant.
            options: see `MatchOptions`.

        Raises:
            AssertionError: the pattern returns something else, or has dead
                code when it does not return the dict.

        Cost: as `SubgraphMatcher`.
        """
        graph, names = _without_names(pattern_gm)
        self.name_node_map: dict[str, Node] = names
        super().__init__(
            graph,
            match_output,
            match_placeholder,
            remove_overlapping_matches,
            ignore_literals,
            **options,
        )

    def match(
        self, graph: Graph, node_name_match: str = ""
    ) -> list[InternalMatch]:
        """Find the pattern in a graph, as `SubgraphMatcher.match` does.

        Args:
            graph: in an order in which it can run.
            node_name_match: an anchor may also be paired with a node that
                has this text in its name.

        Returns:
            The matches. The `name_node_map` of each says which nodes of
            `graph` have the names; an input of the pattern may stand for a
            constant, too, and is left out if the pattern does not use it.

        torch.fx: passes/utils/matcher_with_name_node_map_utils.py,
        SubgraphMatcherWithNameNodeMap.match
        """
        return [*map(self._named, super().match(graph, node_name_match))]

    def match_at(self, graph: Graph, node: Node) -> InternalMatch | None:
        """The match whose anchor is paired with `node`, with its names."""
        match = super().match_at(graph, node)
        return None if match is None else self._named(match)

    def _named(self, match: InternalMatch) -> InternalMatch:
        """A match with the names filled in."""
        for name, node in self.name_node_map.items():
            if node in match.nodes_map:
                match.name_node_map[name] = match.nodes_map[node]
        return match


def _without_names(pattern: GraphModule) -> tuple[Graph, dict[str, Node]]:
    """A copy of a pattern's graph without the dict, and the dict.

    An exported pattern returns a flat list, and its code generator knows how
    to nest it; a traced one returns the tuple itself.
    """
    whole = graph_of(pattern)
    graph = Graph()
    graph.owning_module = whole.owning_module
    leaves = graph.graph_copy(whole, {})
    output: AnyValue = whole.process_outputs(leaves)
    if not isinstance(output, tuple):
        raise AssertionError(
            f"Expecting the pattern graph to return a tuple, not {output!r}"
        )
    if len(output) < 2:
        raise AssertionError(
            "Expecting the pattern graph to have at least two outputs: what "
            "the pattern returns, and a dict that names its nodes"
        )
    *values, names = output
    if not isinstance(names, dict):
        raise AssertionError(
            "Expecting the input graph to have a dict output as the last "
            f"element, not {names!r}"
        )
    graph.output(torch_pytree.tree_leaves(values))
    return graph, dict(names)
