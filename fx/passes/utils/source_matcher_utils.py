"""Passes: which nodes an exported graph has for one call in the user's program.

`torch.export` and Dynamo take a program apart into small operators, and note on
each node what it came from.  Here the nodes with one origin are gathered again:

    nn.Linear named "fc"  →  [fc_weight, fc_bias, linear]
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field

from ...graph import Graph
from ...node import Node
from ...use_def.errors import refuse_torchs
from ...use_def.values import AnyValue

__all__ = [
    "SourcePartition",
    "check_subgraphs_connected",
    "get_source_partitions",
]


@dataclass
class SourcePartition:
    """The nodes that one call in the user's program has become.

    Attributes:
        nodes: the nodes, in order.
        source: what was called: a function, a class of modules, or a name.
        input_nodes: the nodes outside whose values they use, in order, those
            that fetch an attribute aside.
        output_nodes: those of `nodes` that others use.
        params: those of `nodes` that fetch an attribute.

    torch.fx: passes/utils/source_matcher_utils.py, SourcePartition
    """

    nodes: list[Node]
    source: AnyValue
    input_nodes: list[Node] = field(default_factory=list)
    output_nodes: list[Node] = field(default_factory=list)
    params: list[Node] = field(default_factory=list)


def get_source_partitions(
    graph: Graph,
    wanted_sources: list[AnyValue],
    filter_fn: Callable[[Node], bool] | None = None,
) -> dict[AnyValue, list[SourcePartition]]:
    """Gather the nodes that come from the same call.

        gm = fx.from_torch(torch.export.export(model, inputs).module())
        get_source_partitions(gm.graph, [nn.Linear, torch.relu])

    The notes are read in this order: `source_fn_stack`, whose innermost entry
    counts; `torch_fn`, by the function's name; and for calls of functions the
    innermost module in `nn_module_stack`.  Only what has no note of the first
    kind is looked up in the others.

    Args:
        graph: with the notes of torch.export or Dynamo.
        wanted_sources: functions, classes of modules, and names.
        filter_fn: leave out a partition if this is false for one of its nodes.

    Returns:
        For each source that was found, its partitions, in the order of the
        graph.

    Raises:
        TypeError: `graph` is not a Graph, or is one of torch.fx;
            `wanted_sources` is a single source.
        ValueError: a node has notes of another form.

    Cost: O(nodes + uses), and for each node O(wanted sources).

    torch.fx: passes/utils/source_matcher_utils.py, get_source_partitions; it
    looks only at positional arguments that are nodes, so that the inputs of
    `torch.cat`, which are in a list, are missing.
    """
    refuse_torchs(graph)
    _check_types(graph, wanted_sources)
    wanted = [*wanted_sources]
    sources: dict[AnyValue, dict[str, list[Node]]] = {}
    for node in graph.nodes:
        try:
            for source, name in _origins(node, wanted):
                sources.setdefault(source, {}).setdefault(name, []).append(node)
        except (LookupError, TypeError, ValueError) as error:
            raise ValueError(
                f"the notes on where Node {node} comes from cannot be read "
                f"({error}): export the program again, or correct node.meta"
            ) from error
    return {
        source: [
            _partition(nodes, source)
            for nodes in by_name.values()
            if filter_fn is None or all(map(filter_fn, nodes))
        ]
        for source, by_name in sources.items()
    }


def check_subgraphs_connected(
    subgraph1: SourcePartition, subgraph2: SourcePartition
) -> bool:
    """Whether a node of the second uses a node of the first.

    Cost: O(nodes of both, and their users).

    torch.fx: passes/utils/source_matcher_utils.py, check_subgraphs_connected
    """
    inside = set(subgraph2.nodes)
    return any(not inside.isdisjoint(node.users) for node in subgraph1.nodes)


def _check_types(graph: object, wanted: object) -> None:
    """Raise unless these are a graph, and several sources."""
    if not isinstance(graph, Graph):
        raise TypeError(
            f"expected a Graph, not a {type(graph).__name__}: that of a "
            "GraphModule is `gm.graph`"
        )
    if isinstance(wanted, (str, type)) or not isinstance(wanted, Iterable):
        raise TypeError(
            f"wanted_sources is {wanted!r}: give a list, such as [nn.Linear]"
        )


def _origins(
    node: Node, wanted: Collection[AnyValue]
) -> Iterator[tuple[AnyValue, str]]:
    """The wanted source that a node comes from, if any, and the call's name."""
    stack: AnyValue = node.meta.get("source_fn_stack")
    if stack:
        name, source = stack[-1][:2]
        if source in wanted:
            yield source, name
        return
    name, function = node.meta.get("torch_fn") or ("", "")
    source = function.split(".")[1] if function else None
    if source in wanted:
        yield source, name
        return
    modules: AnyValue = node.meta.get("nn_module_stack")
    if modules and node.op == "call_function":
        name, cls = [*modules.values()][-1]
        for source in wanted:
            if _is_a(cls, source):
                yield source, name
                return


def _is_a(cls: type | str, source: AnyValue) -> bool:
    """Whether a class, noted by itself or by its name, is one wanted."""
    if not isinstance(source, type):
        return bool(cls == source)
    if isinstance(cls, type):
        return issubclass(cls, source)
    return cls == f"{source.__module__}.{source.__qualname__}"


def _partition(nodes: list[Node], source: AnyValue) -> SourcePartition:
    """A partition with what goes into it and comes out of it."""
    inside = set(nodes)
    params = [node for node in nodes if node.op == "get_attr"]
    calls = [node for node in nodes if node.op != "get_attr"]
    outputs = [node for node in calls if not inside.issuperset(node.users)]
    used = {value for node in nodes for value in node.all_input_nodes}
    inputs = [node for node in used - inside if node.op != "get_attr"]
    return SourcePartition(nodes, source, sorted(inputs), outputs, params)
