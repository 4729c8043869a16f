"""The six steps of "fx in one page", each with what it makes possible."""

import operator
from typing import Any

import torch
from torch import nn

from docs.examples.tiny_fx import (
    Graph,
    Proxy,
    code,
    interpret,
    merge_equal_calls,
    record,
    trace,
)


class Gate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        return torch.relu(y + x) * torch.sigmoid(y + x)


def by_hand() -> None:
    graph = Graph()
    x = graph.add("placeholder", "x")
    add = graph.add("call_function", operator.add, x, x)
    relu = graph.add("call_function", torch.relu, add)
    graph.add("output", "output", relu)
    print(graph)
    print([node.name for node in graph.nodes if add in node.args])


def recorded() -> None:
    graph = Graph()
    x: Any = Proxy(graph, graph.add("placeholder", "x"))
    y = torch.relu(x + x).sum(dim=0)
    record("output", "output", (y,))
    print(graph)
    try:
        print("positive" if y > 0 else "negative")
    except TypeError as error:
        print(error)


def traced() -> None:
    print(trace(Gate()))


def interpreted() -> None:
    gate, x = Gate(), torch.ones(2, 4)
    graph = trace(gate)
    print(torch.equal(interpret(graph, gate, x), gate(x)))

    for node in graph.nodes:
        if node.target is torch.relu:
            node.target = torch.tanh
    y = gate.linear(x) + x
    expected = torch.tanh(y) * torch.sigmoid(y)
    print(torch.equal(interpret(graph, gate, x), expected))


def written() -> None:
    gate, x = Gate(), torch.ones(2, 4)
    text = code(trace(gate))
    print(text)

    names: dict[str, Any] = {}
    exec(text, names)
    print(torch.equal(names["forward"](gate, x), gate(x)))


def simplified() -> None:
    gate, x = Gate(), torch.ones(2, 4)
    graph = trace(gate)
    merge_equal_calls(graph)
    print(code(graph))
    print(torch.equal(interpret(graph, gate, x), gate(x)))
