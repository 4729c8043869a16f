"""Questions of stage 02: what does this print?"""

from __future__ import annotations

import operator

import torch

from fx.graph import Graph
from fx.node import Node
from fx.use_def.lint import last_users, problems


def residual() -> tuple[Graph, Node, Node, Node, Node]:
    """Residual's graph and its nodes, without the output."""
    graph = Graph()
    x = graph.placeholder("x")
    linear = graph.call_module("linear", (x,))
    add = graph.call_function(operator.add, (linear, x))
    relu = graph.call_function(torch.relu, (add,))
    graph.output(relu)
    return graph, x, linear, add, relu


def nested() -> None:
    graph, x, linear, add, _ = residual()
    pair = [add, (x, 3)]
    cat = graph.call_function(torch.cat, (pair, add), {"out": [linear, x]})
    print(cat.all_input_nodes, len(x.users))


def assigned_again() -> None:
    _, x, linear, *_ = residual()
    linear.args = linear.args
    print(list(x.users))


def put_behind() -> None:
    graph, _, linear, add, _ = residual()
    with graph.inserting_after(linear):
        neg = graph.call_function(torch.neg, (linear,))
    linear.replace_all_uses_with(neg)
    print(add.args, neg.args, list(linear.users))


def erased_arguments() -> None:
    graph, x, linear, *_ = residual()
    cat = graph.call_function(torch.cat, ([x, linear], 1))
    graph.erase_node(cat)
    print(cat.args, list(x.users))


def copied() -> None:
    graph, _, _, add, relu = residual()
    relu.meta["notes"] = ["fast"]
    copy = graph.node_copy(relu)
    copy.meta["notes"].append("copied")
    copy.meta["new"] = True
    print(copy, list(add.users), relu.meta)


def moved_back() -> None:
    graph, x, *_ = residual()
    graph.output_node().append(x)
    print([problem.node for problem in problems(graph)])


def read_last() -> None:
    graph, *_ = residual()
    for value, reader in last_users(graph.nodes).items():
        print(f"{value}: {reader}")


def walked_forwards() -> None:
    graph, x, *_ = residual()
    with graph.inserting_before(graph.output_node()):
        neg = graph.call_function(torch.neg, (x,))
        graph.call_function(torch.cos, (neg,))
    for node in graph.nodes:
        if not node.users and node.op == "call_function":
            graph.erase_node(node)
    print(*graph.nodes)
