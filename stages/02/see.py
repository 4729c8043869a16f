"""What one can see once an exercise of stage 02 is right."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Final

import torch

from fx.graph import Graph
from fx.use_def.lint import last_users, problems


def residual() -> Graph:
    """relu(linear(x) + x), and a chain without users."""
    graph = Graph()
    x = graph.placeholder("x")
    linear = graph.call_module("linear", (x,))
    add = graph.call_function(operator.add, (linear, x))
    relu = graph.call_function(torch.relu, (add,))
    graph.call_function(torch.cos, (graph.call_function(torch.neg, (add,)),))
    graph.output(relu)
    return graph


def users(graph: Graph) -> str:
    """Each node that is used, and its users."""
    return "\n".join(
        f"{node} → {', '.join(map(str, node.users))}"
        for node in graph.nodes
        if node.users
    )


def edges() -> str:
    """The users of a graph, in which relu is replaced."""
    graph = residual()
    relu = graph.find_nodes(op="call_function", target=torch.relu)[0]
    with graph.inserting_after(relu):
        gelu = graph.call_function(torch.nn.functional.gelu, relu.args)
    relu.replace_all_uses_with(gelu)
    return users(graph)


def erased() -> str:
    """A node goes, and its input loses a user."""
    graph = residual()
    cos = graph.find_nodes(op="call_function", target=torch.cos)[0]
    graph.erase_node(cos)
    return users(graph)


def linted() -> str:
    """What the verifier says of a node that is moved too far up."""
    graph = residual()
    add = graph.find_nodes(op="call_function", target=operator.add)[0]
    add.input_at(0).prepend(add)
    return next(problems(graph)).message.partition("\n")[0]


def lives() -> str:
    """How long each value is needed."""
    last = last_users(residual().nodes)
    return ", ".join(f"{node} until {user}" for node, user in last.items())


def cleaned() -> str:
    """A dead chain goes in one walk."""
    graph = residual()
    before = len(graph.nodes)
    graph.eliminate_dead_code()
    return f"{before} nodes became {len(graph.nodes)}: " + ", ".join(
        map(str, graph.nodes)
    )


SEE: Final[dict[str, Callable[[], str]]] = {
    "edges": edges,
    "Graph.erase_node": erased,
    "_uses": linted,
    "last_users": lives,
    "Graph.eliminate_dead_code": cleaned,
}
"""An exercise -> what it can do now."""
