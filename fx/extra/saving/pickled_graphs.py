"""Extra: a graph in a pickle: its nodes, then what each of them holds.

A pickle has numbers in place of nodes.  The nodes are made first, from their
names, opcodes and targets, and get their arguments and notes afterwards.  The
owner is left out: it is a module, which pickles the graph itself.

The functions here are the methods of `Graph` and `Node` that pickle asks for.
"""

from __future__ import annotations

from ...graph import Graph
from ...node import Node
from ...use_def.text import importable
from ...use_def.values import AnyValue
from .packing import Packed, pack, portable, unpack


def state_of(graph: Graph) -> dict[str, AnyValue]:
    """What is pickled of a graph.

    The names that it has given belong to it: after loading, the next `add` is
    `add_7`, as it would have been.

    Cost: O(nodes + size of what they hold).
    """
    names = graph._graph_namespace
    nodes = dict.fromkeys(graph._nodes)
    held = [
        (
            node._args,
            node._kwargs,
            portable(node.meta),
            getattr(node, "__dict__", {}),
            [user for user in node.users if user in nodes],
        )
        for node in nodes
    ]
    return {
        "nodes": pack([(n._name, n._op, n._target, n.type) for n in nodes], ()),
        "held": pack(held, nodes),
        "names": (list(names._used), names._counts),
        "co_fields": graph._co_fields,
        "about": pack(
            {
                "tracer": (importable(graph._tracer_cls), graph._tracer_extras),
                "pytree_info": graph._pytree_info,
                "codegen": vars(graph).get("_codegen"),
            },
            (),
        ),
    }


def restore(graph: Graph, state: dict[str, AnyValue]) -> None:
    """Make the nodes of a graph again, and give each what it held.

    The users of a node are in the order of their first use, which need not be
    that of the nodes, so they are put back in their order.

    Args:
        graph: an instance that was not initialised.
        state: what `state_of` gave.
    """
    about = unpack(state["about"], ())
    Graph.__init__(graph, None, *about["tracer"])
    for name, op, target, kind in unpack(state["nodes"], ()):
        graph._nodes.add(
            Node(graph, name, op, target, (), {}, kind), graph._insert
        )
    nodes = list(graph._nodes)
    held = unpack(state["held"], nodes)
    for node, (args, kwargs, meta, extra, _) in zip(nodes, held, strict=True):
        node._update_args_kwargs(args, kwargs)
        node.meta = meta
        vars(node).update(extra)
    for node, (*_, users) in zip(nodes, held, strict=True):
        node.users = dict.fromkeys(users)
    names = graph._graph_namespace
    used, names._counts = state["names"]
    names._used = dict.fromkeys(used)
    graph._pytree_info = about["pytree_info"]
    graph._co_fields = state["co_fields"]
    if about["codegen"] is not None:
        graph._codegen = about["codegen"]


def reduced(node: Node) -> tuple[AnyValue, ...]:
    """A node is pickled as its graph and its place there.

    An erased node has no place, and its inputs are gone.

    Cost: O(nodes), besides the graph's own, which is pickled once.
    """
    for place, other in enumerate(node.graph._nodes):
        if other is node:
            return node_at, (node.graph, place)
    what = pack((node._name, node.op, node.target, node.type), ())
    return erased_node, (node.graph, what)


def node_at(graph: Graph, place: int) -> Node:
    """The node at a place in the order of `graph`."""
    return next(n for i, n in enumerate(graph._nodes) if i == place)


def erased_node(graph: Graph, packed: Packed) -> Node:
    """A node that says it was erased from `graph`."""
    return Node._erased_from(graph, *unpack(packed, ()))
