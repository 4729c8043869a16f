"""Stage 01: the insert point of a graph, where new nodes go."""

from __future__ import annotations

import pytest

from fx.linked_list.ordered_graph import NamedNode, OrderedGraph
from stages.checking import check, raising, same, working

Node = NamedNode[object]
Graph = OrderedGraph[Node]


def program() -> tuple[Graph, list[Node]]:
    """The nodes of Residual, in order, without their values."""
    graph = OrderedGraph(NamedNode)
    nodes = [
        graph.create_node("placeholder", "x"),
        graph.create_node("call_module", "linear"),
        graph.create_node("call_method", "add"),
        graph.create_node("call_method", "relu"),
        graph.create_node("output", "output"),
    ]
    return graph, nodes


def new(graph: Graph, name: str) -> Node:
    """A new node at the insert point."""
    return graph.create_node("call_method", name)


def names(graph: Graph) -> str:
    """The names of a graph's nodes, in order."""
    return " ".join(node.name for node in graph.nodes)


@pytest.mark.exercise("linked_list.ordered_graph.OrderedGraph.inserting_after")
def test_a_new_node_goes_right_after() -> None:
    graph, (_, linear, *_) = program()
    with graph.inserting_after(linear):
        new(graph, "neg")
    same(
        names(graph),
        "x linear neg add relu output",
        "In a `with graph.inserting_after(linear)` block, a new node must go "
        "right after linear.",
    )


@pytest.mark.exercise("linked_list.ordered_graph.OrderedGraph.inserting_after")
def test_when_the_block_ends_nodes_go_to_the_end_again() -> None:
    graph, (x, *_) = program()
    with graph.inserting_after(x):
        new(graph, "neg")
    new(graph, "cos")
    same(
        names(graph),
        "x neg linear add relu output cos",
        "After the `with` block, the insert point must be the one from before "
        "it, so that a new node goes to the end.",
    )


@pytest.mark.exercise("linked_list.ordered_graph.OrderedGraph.inserting_after")
def test_two_nodes_after_one_come_out_in_reverse() -> None:
    graph, (x, *_) = program()
    with graph.inserting_after(x):
        new(graph, "first")
        new(graph, "second")
    same(
        names(graph),
        "x second first linear add relu output",
        "Each new node goes right after x, so the second one comes between x "
        "and the first.",
    )


@pytest.mark.exercise("linked_list.ordered_graph.OrderedGraph.inserting_after")
def test_without_a_with_block_it_is_for_good() -> None:
    graph, (_, linear, *_) = program()
    graph.inserting_after(linear)
    new(graph, "neg")
    same(
        names(graph),
        "x linear neg add relu output",
        "graph.inserting_after(linear) must set the insert point when it is "
        "called, even without `with`.",
    )


@pytest.mark.exercise("linked_list.ordered_graph.OrderedGraph.inserting_after")
def test_the_insert_point_is_a_method_of_the_node() -> None:
    graph, (x, *_) = program()
    sentence = (
        "The insert point must be the bound method itself, not a function "
        "around it: other code compares the two to see where new nodes go."
    )
    with graph.inserting_after(x):
        check(graph._insert == x.append, sentence)
    with graph.inserting_after():
        check(hasattr(graph._insert, "__self__"), sentence)
        check(
            graph._insert == graph._root.prepend,
            "Without a node, new nodes go to the end, which is before the "
            "sentinel: `self._root.prepend`. (`append` would be the start.)",
        )


@pytest.mark.exercise("linked_list.ordered_graph.OrderedGraph.inserting_after")
def test_without_a_node_it_is_the_end() -> None:
    graph, (x, *_) = program()
    with graph.inserting_before(x), graph.inserting_after():
        new(graph, "neg")
        new(graph, "cos")
    same(
        names(graph),
        "x linear add relu output neg cos",
        "inserting_after() without a node is the end of the graph, and new "
        "nodes must go there in the order of their creation. "
        "(inserting_before() without a node is the start.)",
    )


@pytest.mark.exercise("linked_list.ordered_graph.OrderedGraph.inserting_after")
def test_blocks_can_be_nested_and_left_by_an_error() -> None:
    graph, (x, _, add, *_) = program()
    with graph.inserting_after(add):
        try:
            with graph.inserting_after(x):
                raise KeyError
        except KeyError:
            new(graph, "neg")
    same(
        names(graph),
        "x linear add neg relu output",
        "An error ended the inner `with` block, so the insert point must be "
        "that of the outer block again, after add.",
    )


@pytest.mark.exercise("linked_list.ordered_graph.OrderedGraph.inserting_after")
def test_the_insert_point_goes_where_its_node_goes() -> None:
    graph, (x, linear, _, relu, _) = program()
    with graph.inserting_after(linear):
        relu.append(linear)
        new(graph, "neg")
    same(
        names(graph),
        "x add relu linear neg output",
        "linear was moved after relu while it was the insert point. New nodes "
        "must go after linear, wherever it is now, so keep linear and not the "
        "node that was next to it at first.",
    )
    check(x.next.name == "add", "After linear moved away, add must follow x.")


@pytest.mark.exercise("linked_list.ordered_graph.OrderedGraph.inserting_after")
def test_a_place_that_is_not_in_the_graph_is_refused() -> None:
    graph, (_, linear, *_) = program()
    other, (stranger, *_) = program()
    with raising(
        AssertionError,
        "not in graph",
        "A node of another graph was accepted as the insert point, so new "
        "nodes would go into the wrong list.",
    ):
        graph.inserting_after(stranger)
    other.erase_node(stranger)
    graph.erase_node(linear)
    with raising(
        AssertionError,
        "not in graph",
        "An erased node was accepted as the insert point, so new nodes would "
        "be linked to a node that is not in the graph.",
    ):
        graph.inserting_after(linear)
    refused = (
        "inserting_after refused a node, but changed the insert point anyway: "
        "an InsertPoint changes it as soon as it is made, so check the place "
        "before that."
    )
    with working(refused):
        new(graph, "neg")
    same(names(graph), "x add relu output neg", refused)
