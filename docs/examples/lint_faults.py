"""A graph with five faults, all of which lint finds in one go."""

from __future__ import annotations

import operator

import torch

from fx.graph import Graph
from fx.use_def.lint import excerpt, problems


def main() -> None:
    """Break Residual's graph, and print what is wrong with it."""
    graph = Graph()
    x = graph.placeholder("x")
    graph.placeholder("scale", default_value=2)
    graph.placeholder("bias")
    linear = graph.call_module("linear", (x,))
    add = graph.call_function(operator.add, (linear, x))
    graph.output(add)
    relu = graph.call_function(torch.relu, (add,))
    graph.output(relu)
    graph.placeholder("x")
    for problem in problems(graph):
        print(f"at {problem.node}: {problem.message}")

    print("\nnow linear is moved in front of x:")
    x.prepend(linear)
    for problem in problems(graph):
        print(f"at {problem.node}: {problem.message}")
        print(excerpt(graph, problem.node, around=1))


if __name__ == "__main__":
    main()
