"""Questions of stage 01: what does this print?"""

from __future__ import annotations

from fx.linked_list.namespace import Namespace
from fx.linked_list.ordered_graph import NamedNode, OrderedGraph


def inserted_ahead() -> None:
    graph = OrderedGraph(NamedNode)
    for name in ("a", "b", "c"):
        graph.create_node("placeholder", name)
    met = []
    for node in graph.nodes:
        met.append(node.name)
        if node.name == "b":
            with graph.inserting_after(node):
                graph.create_node("placeholder", "ahead")
            with graph.inserting_before(node):
                graph.create_node("placeholder", "behind")
    print(*met)


def erased_neighbour() -> None:
    graph = OrderedGraph(NamedNode)
    for name in ("a", "b", "c", "d"):
        graph.create_node("placeholder", name)
    met = []
    for node in graph.nodes:
        met.append(node.name)
        if node.name == "b":
            graph.erase_node(node.next)
            graph.erase_node(node)
    print(*met)


def several_after() -> None:
    graph = OrderedGraph(NamedNode)
    x = graph.create_node("placeholder", "x")
    with graph.inserting_after(x):
        graph.create_node("call_method", "first")
        graph.create_node("call_method", "second")
    print(*graph.nodes)


def names_given() -> None:
    names = Namespace()
    wishes = ("add", "add", "add_7", "add", "torch", "2x", "layer.0")
    print(*[names.create_name(wish) for wish in wishes])
