"""Stage 02, step by step: nodes are made, a use is redirected, one erased."""

from __future__ import annotations

import operator

import torch

from docs.machinery.film import Film
from fx.graph import Graph


def film() -> Film:
    """Residual built by hand; then gelu takes the place of relu."""
    steps = Film(rows="Nodes, and who uses each")
    graph = Graph()
    x = graph.placeholder("x")
    shoot(steps, "A placeholder; no node uses it yet.", graph)
    linear = graph.call_module("linear", (x,))
    shoot(steps, "linear has x among its arguments: an edge.", graph)
    add = graph.call_function(operator.add, (linear, x))
    shoot(
        steps,
        "add has linear and x among its arguments; x now has two users.",
        graph,
    )
    relu = graph.call_function(torch.relu, (add,))
    graph.output(relu)
    shoot(steps, "relu and the output complete the program.", graph)
    with graph.inserting_after(relu):
        gelu = graph.call_function(torch.nn.functional.gelu, (add,))
    shoot(steps, "gelu is put behind relu, with the same argument.", graph)
    relu.replace_all_uses_with(gelu)
    shoot(
        steps,
        "relu.replace_all_uses_with(gelu): every user of relu has gelu "
        "among its arguments instead.",
        graph,
    )
    graph.erase_node(relu)
    shoot(
        steps,
        "No node uses relu now, so it can be erased. It disappears from the "
        "users of add, too.",
        graph,
    )
    return steps


def shoot(film: Film, say: str, graph: Graph) -> None:
    """A shot with the users of each node."""
    notes = {
        node.name: "users: " + (", ".join(map(str, node.users)) or "none")
        for node in graph.nodes
    }
    film.graph(say, graph, notes=notes)
