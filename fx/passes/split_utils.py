"""Passes: cut a module into the parts that tags on its nodes name.

`split_module` asks a function where each call belongs.  Here another pass has
decided that already, and has left a tag on each node: which process runs it, or
which back end.  The tags are the parts, and their order is given, so a part in
a wrong place is an error.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import nn

from ..codegen.attributes import copy_attributes
from ..extra.lending.lending import names_of
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg
from ..use_def.dotted_path import find
from ..use_def.values import AnyValue
from .split_module import Part, PartId, Parts, connect, out_of_order
from .tools_common import CALLABLE_NODE_OPS
from .utils.common import lift_subgraph_as_module, subgraph_of

__all__ = ["getattr_recursive", "setattr_recursive", "split_by_tags"]

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__)


def getattr_recursive(obj: object, name: str) -> AnyValue:
    """The object at a dotted path; None if there is none.

    torch.fx: passes/split_utils.py, getattr_recursive
    """
    value = obj
    for atom in name.split("."):
        # A ModuleList has methods, too, and `append` is not a child.
        if isinstance(value, nn.ModuleList):
            value = value._modules.get(atom)
        else:
            value = getattr(value, atom, None)
    return value


def setattr_recursive(obj: object, attr: str, value: object) -> None:
    """Set the attribute at a dotted path, all of whose owners exist.

    Raises:
        AttributeError: an owner on the way is missing.

    torch.fx: passes/split_utils.py, setattr_recursive
    """
    path, _, name = attr.rpartition(".")
    setattr(find(obj, path) if path else obj, name, value)


def split_by_tags(
    gm: GraphModule,
    tags: list[str],
    return_fqn_mapping: bool = False,
    return_tuple: bool = False,
    GraphModuleCls: type[GraphModule] = GraphModule,
) -> AnyValue:
    """Cut a module into one submodule for each tag, in the order of the tags.

    Each call is in the part that its attribute `tag` names:

        for node in gm.graph.nodes:
            node.tag = "front" if node.name in front else "back"
        split_by_tags(gm, ["front", "back"])

    Attributes are fetched in the parts that use them, so that a part can be
    sent away with all that it needs.  (In a module that `split_module` makes,
    the main graph fetches them.)

    Args:
        gm: the module; it is not changed, and the new one shares its modules
            and tensors.
        tags: the names of the parts, which become those of the submodules. A
            part without calls is a submodule that returns ().
        return_fqn_mapping: return also the path in `gm` of each module that
            is called or attribute that is fetched -> its new path.
        return_tuple: return a tuple also from parts with a single output.
        GraphModuleCls: the class of the new module.

    Returns:
        A module that computes what `gm` computes, or a tuple of it and the
        mapping.

    Raises:
        AssertionError: a call has no tag; or its part comes before one that
            must run first: it uses a value of that one, or one of two calls
            may have an effect that the other one notices.
        KeyError: a tag is not among `tags`.
        ValueError: a tag is the name of an attribute that the output fetches.

    Cost: O(nodes + uses).

    torch.fx: passes/split_utils.py, split_by_tags; it checks only the use of
    values, so that a write may pass a read, and the parameters of the new
    module have no defaults.
    """
    parts, part_of = _tagged(gm.graph, tags)
    connect(gm.graph, parts, part_of)
    _check_order(parts)
    main, values = Graph(), dict[Node, Node]()
    main.set_codegen(gm.graph._codegen)
    for node in gm.graph.find_nodes(op="placeholder"):
        values[node] = main.node_copy(node)
    returned = gm.graph.output_node()
    fetched = [n for n in returned.all_input_nodes if n.op == "get_attr"]
    for node in fetched:
        values[node] = main.node_copy(node)
    attributes: dict[str, AnyValue] = {}
    mapping: dict[str, str] = {}
    for part in parts.values():
        tag, outputs = part.name, [*part.outputs]
        graph, inputs = subgraph_of(
            part.nodes, outputs, fetches=True, as_tuple=return_tuple
        )
        attributes[tag], paths = lift_subgraph_as_module(gm, graph, tag)
        mapping |= paths
        call = main.call_module(tag, tuple(values[node] for node in inputs))
        if len(outputs) == 1 and not return_tuple:
            values[outputs[0]] = call
            continue
        for number, node in enumerate(outputs):
            values[node] = main.call_function(operator.getitem, (call, number))
    result = map_arg(returned.args[0], values.__getitem__)
    main.output(result, returned.type).meta = returned.meta.copy()
    for node in fetched:
        path = str(node.target)
        first = path.partition(".")[0]
        if first in parts:
            raise ValueError(
                f"the part {first!r} and the attribute {path!r} would have "
                "one name: use another tag"
            )
        attributes[path] = find(gm, path)
    new = GraphModuleCls(attributes, main)
    kept = [str(node.target) for node in fetched]
    copy_attributes(gm, new, kept)  # says which buffers are persistent
    return (new, mapping) if return_fqn_mapping else new


def _tagged(
    graph: Graph, tags: Sequence[str]
) -> tuple[Parts, dict[Node, PartId]]:
    """The parts with their calls, and the part of each call."""
    parts: Parts = {tag: Part(tag) for tag in tags}
    part_of: dict[Node, PartId] = {}
    for node in graph.nodes:
        if node.op in CALLABLE_NODE_OPS:
            if not hasattr(node, "tag"):
                raise AssertionError(
                    f"Node does not have tag: {node.format_node()}"
                )
            copied: AnyValue = node
            part_of[node] = copied.tag
            parts[copied.tag].nodes.append(node)
    return parts, part_of


def _check_order(parts: Parts) -> None:
    """Raise if a part must run before one that precedes it."""
    for tag, needed in out_of_order(parts):
        before, after = parts[tag].needs[needed]
        why = "uses" if before in after.all_input_nodes else "must stay behind"
        raise AssertionError(
            f"Component {tag} order must be >= max of its upstream "
            f"components: {after} {why} {before}, which is in {needed}"
        )
