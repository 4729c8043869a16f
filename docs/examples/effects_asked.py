"""What `classify` answers, and why, for calls that look alike."""

from __future__ import annotations

import operator

import torch
from torch.nn import functional

from fx.extra.effects.effects import classify
from fx.graph import Graph
from fx.node import Node


def say(node: Node) -> None:
    """Print a node's class and the reason."""
    effect = classify(node)
    print(f"{node.name:<10} {effect.kind:<8} {effect.reason}")


def mine(x: torch.Tensor) -> torch.Tensor:
    """Somebody's function, of which only they know what it does."""
    return x


def main() -> None:
    """Ask about pairs of calls that differ in one thing."""
    graph = Graph()
    x = graph.placeholder("x")
    flag = graph.placeholder("flag")
    say(graph.call_function(torch.add, (x, 1)))
    say(graph.call_function(torch.add, (x, 1), {"out": x}))
    say(graph.call_method("add", (x, 1)))
    say(graph.call_method("add_", (x, 1)))
    say(graph.call_function(operator.iadd, (x, 1)))
    dropout = functional.dropout
    say(graph.call_function(dropout, (x,), {"training": False}))
    say(graph.call_function(dropout, (x,), {"training": flag}))
    say(graph.call_function(print, (x,)))
    say(graph.call_function(mine, (x,)))
    say(graph.call_function(mine, (x,), {"out": x}))


if __name__ == "__main__":
    main()
