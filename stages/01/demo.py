"""Stage 01: builds the nodes of Residual, edits them, walks and prints them."""

from __future__ import annotations

import operator

import torch

from fx.linked_list.ordered_graph import NamedNode, OrderedGraph


def residual() -> OrderedGraph[NamedNode[object]]:
    """The five lines of Residual.forward as nodes, which have no values yet."""
    graph = OrderedGraph(NamedNode)
    graph.create_node("placeholder", "x")
    graph.create_node("call_module", "linear")
    graph.create_node("call_function", operator.add)
    graph.create_node("call_function", torch.relu)
    graph.create_node("output", "output")
    return graph


def show(title: str, graph: OrderedGraph[NamedNode[object]]) -> None:
    """Print the names of a graph's nodes, in order."""
    names = " > ".join(node.name for node in graph.nodes)
    print(f"{title}\n  {names}")


def main() -> None:
    """Build Residual, insert nodes, move one, and erase some."""
    graph = residual()
    show("built", graph)
    x, linear, add, relu, output = graph.nodes

    with graph.inserting_before(add):
        graph.create_node("call_method", "neg")
        graph.create_node("call_function", operator.add)
    show("two before add", graph)

    with graph.inserting_after(x):
        graph.create_node("call_method", "float")  # the name of a builtin
        graph.create_node("get_attr", "linear.bias")
    show("two after x", graph)

    relu.append(add)
    show("add moved", graph)
    print(f"  add < relu is {add < relu}, x < output is {x < output}")
    relu.prepend(add)

    for node in graph.nodes:  # erase, while the loop is walking
        if node not in (x, linear, add, relu, output):
            graph.erase_node(node)
    show("erased in a loop", graph)
    backwards = " > ".join(node.name for node in reversed(graph.nodes))
    print(f"backwards\n  {backwards}")
    print(f"the {len(graph.nodes)} lines of Residual.forward")
    for node in graph.nodes:
        print(f"  {node.name:<8}{node.op}")


if __name__ == "__main__":
    main()
