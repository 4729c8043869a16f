"""Passes: some nodes of a graph made a graph, and a module, of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import nn

from ...codegen.attributes import paths_in
from ...graph import Graph
from ...graph_module import GraphModule
from ...node import Node
from .matcher_utils import SubgraphMatcher

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]


class HolderModule(nn.Module):
    """A module that only holds others, by name.

    torch.fx: passes/utils/common.py, HolderModule
    """

    def __init__(self, d: Mapping[str, nn.Module | None]) -> None:
        """Hold the modules of a dict under its keys."""
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


def lift_subgraph_as_module(
    gm: GraphModule,
    subgraph: Graph,
    comp_name: str = "",
    class_name: str = "GraphModule",
) -> tuple[GraphModule, dict[str, str]]:
    """Make a module of a graph whose nodes were copied from another one's.

    Args:
        gm: has what the nodes name; the new module shares it, at its paths.
        subgraph: the graph, which is then the new module's.
        comp_name: the name that the new module will have in another one.
        class_name: the name of its class.

    Returns:
        The module, and path in `gm` -> path below `comp_name`.

    torch.fx: passes/utils/common.py, lift_subgraph_as_module
    """
    lifted = GraphModule(gm, subgraph, class_name)
    paths = paths_in(subgraph.nodes)
    return lifted, {path: f"{comp_name}.{path}" for path in paths}


def compare_graphs(left: Graph, right: Graph) -> bool:
    """Whether two graphs are the same but for names.

    They must have as many nodes, and what the second returns must be computed
    as in the first, from the inputs at the same places.

    Raises:
        AssertionError: `left` has a node without users or effect.

    torch.fx: passes/utils/common.py, compare_graphs; a match of the first
    graph somewhere in the second is enough, whichever inputs it pairs.
    """
    if len(left.nodes) != len(right.nodes):
        return False
    matcher = SubgraphMatcher(left, match_output=True, match_placeholder=True)
    inputs = right.find_nodes(op="placeholder")
    return any(
        match.placeholder_nodes == inputs for match in matcher.match(right)
    )


def subgraph_of(
    nodes: Sequence[Node],
    outputs: Sequence[Node],
    *,
    fetches: bool = False,
    as_tuple: bool = False,
    in_order: bool = False,
) -> tuple[Graph, list[Node]]:
    """Copy some nodes of a graph into a graph of their own.

    Args:
        nodes: in the order in which they run.
        outputs: those of them whose values the new graph returns; one alone
            is returned as it is.
        fetches: fetch attributes in the new graph, instead of taking those
            that are fetched outside as parameters.
        as_tuple: return a tuple also of one value.
        in_order: keep the order of the whole graph's inputs, if the new graph
            has no others; a pass that fuses all their users expects that.

    Returns:
        The graph, and the nodes outside whose values are its parameters, in
        the order in which they are used first.

    Cost: O(nodes + uses).
    """
    graph = Graph()
    inputs = _inputs_of(nodes, fetches)
    if in_order and all(value.op == "placeholder" for value in inputs):
        inputs.sort()
    copies: dict[Node, Node] = {}
    for value in inputs:
        copies[value] = graph.placeholder(value.name, value.type)
        copies[value].meta = value.meta.copy()
    for node in nodes:
        for value in node.all_input_nodes:
            if value not in copies:
                copies[value] = graph.node_copy(value)
        copies[node] = graph.node_copy(node, copies.__getitem__)
    results = tuple(copies[node] for node in outputs)
    alone = len(results) == 1 and not as_tuple
    graph.output(results[0] if alone else results)
    return graph, inputs


def _inputs_of(nodes: Sequence[Node], fetches: bool) -> list[Node]:
    """The nodes outside whose values some nodes take, in order."""
    inside = set(nodes)
    used = [value for node in nodes for value in node.all_input_nodes]
    return [
        value
        for value in dict.fromkeys(used)
        if value not in inside and not (fetches and value.op == "get_attr")
    ]
