"""A choice for stages 01 and 02: one edit of a graph, and what it changes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

import torch

from docs.machinery.film import Arc, Choices, Film, Row
from fx.graph import Graph
from fx.linked_list.linked_list import GAP
from fx.node import Node

Edit = Callable[[Graph, Mapping[str, Node]], object]


def insert(graph: Graph, nodes: Mapping[str, Node]) -> None:
    """Put a node before add."""
    with graph.inserting_before(nodes["add"]):
        graph.call_function(torch.neg, (nodes["x"],))


def replace_and_erase(graph: Graph, nodes: Mapping[str, Node]) -> None:
    """Take relu out of the program."""
    nodes["relu"].replace_all_uses_with(nodes["add"])
    graph.erase_node(nodes["relu"])


EDITS: dict[str, tuple[str, Edit]] = {
    "no edit": (
        "The keys grow along the ring, and each node knows its users.",
        lambda graph, nodes: None,
    ),
    "insert neg before add": (
        "The new node gets a key between those of its neighbours. Its use of "
        "x makes it a user of x.",
        insert,
    ),
    "move relu before add": (
        "The ring and the keys change, the users do not.",
        lambda graph, nodes: nodes["add"].prepend(nodes["relu"]),
    ),
    "erase relu": (
        "Nothing changes.",
        lambda graph, nodes: graph.erase_node(nodes["relu"]),
    ),
    "relu → add for all users": (
        "The output is a user of add now. relu stays where it is, without "
        "users.",
        lambda graph, nodes: nodes["relu"].replace_all_uses_with(nodes["add"]),
    ),
    "… and erase relu": (
        "Without users relu can go, and add loses a user with it.",
        replace_and_erase,
    ),
}


def choices() -> Choices:
    """Each edit, done to a graph of its own."""
    asked = Choices("Edit the graph:", rows="The ring: order keys, and users")
    for label, (say, edit) in EDITS.items():
        film = asked.option(label)
        graph = Graph()
        x = graph.placeholder("x")
        linear = graph.call_module("linear", (x,))
        add = graph.call_function(operator.add, (linear, x))
        graph.output(graph.call_function(torch.relu, (add,)))
        shoot(film, "Before.", graph)
        nodes = {node.name: node for node in graph.nodes}
        try:
            edit(graph, nodes)
            graph.lint()
        except RuntimeError as error:
            first = str(error).partition("\n")[0]
            say = f"{say} {type(error).__name__}: {first}"
        shoot(film, say, graph)
    return asked


def shoot(film: Film, say: str, graph: Graph) -> None:
    """A shot with the key of each node, counted in gaps, and its users."""
    rows = [
        Row(
            node.name,
            f"{node._sort_key / GAP:<3g} "
            + (", ".join(map(str, node.users)) or "nobody"),
        )
        for node in graph.nodes
    ]
    arcs = [
        Arc(used.name, node.name)
        for node in graph.nodes
        for used in node.all_input_nodes
    ]
    film.shot(say, rows, arcs)
