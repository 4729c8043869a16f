"""What each of the six steps of "fx in one page" makes of a graph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from docs.examples.tiny_fx import (
    Graph,
    Node,
    Proxy,
    code,
    label,
    merge_equal_calls,
    record,
    swap,
    trace,
)
from docs.examples.tiny_steps import Gate
from docs.machinery.film import Arc, Choices, Film, Row


def choices() -> Choices:
    """A still for each step; what is new or changed is found by itself."""
    asked = Choices("Which step?")
    graph = Graph()
    x: Any = Proxy(graph, graph.add("placeholder", "x"))
    total = torch.relu(x + x)
    recorded = asked.option("recorded")
    shoot(recorded, "Before", graph.nodes)
    total = total.sum(dim=0)
    shoot(recorded, "One more call", graph.nodes)
    graph.nodes.pop()
    record("output", "output", (x,))
    graph.nodes[-1].args = (graph.nodes[-2],)
    shoot(asked.option("data"), "Who uses add?", graph.nodes, look="relu")

    nodes = trace(Gate()).nodes
    shoot(asked.option("traced"), "Gate", nodes, look="linear")
    changed = asked.option("changed")
    shoot(changed, "Before", nodes)
    (relu,) = [node for node in nodes if node.target is torch.relu]
    relu.target = torch.tanh
    shoot(changed, "One target changed", nodes)

    graph = trace(Gate())
    lines = [line.split()[0] for line in code(graph).splitlines()]
    where = {
        "placeholder": "an argument",
        "output": f"line {lines.index('return') + 1}: return",
    }
    for node in graph.nodes:
        if node.op not in where:
            where[node.name] = f"line {lines.index(node.name) + 1}"
    rows = [
        Row(node.name, where.get(node.op) or where[node.name])
        for node in graph.nodes
    ]
    asked.option("written").shot("A line for each node", rows)

    merged = asked.option("merged")
    shoot(merged, "Before", graph.nodes)
    merge_equal_calls(graph)
    shoot(merged, "One addition less", graph.nodes)
    return asked


def shoot(film: Film, say: str, nodes: Iterable[Node], look: str = "") -> None:
    """Take a shot of nodes, without their opcodes: a margin is narrow."""
    rows, arcs = [], []
    for node in nodes:
        given = ", ".join(node.given())
        texts = {"placeholder": "placeholder", "output": f"return {given}"}
        text = texts.get(node.op, f"{label(node.target)}({given})")
        pointed = node.name == look
        rows.append(Row(node.name, text, "", "look" if pointed else ""))
        used: list[Node] = []
        swap((node.args, node.kwargs), Node, used.append)
        arcs += [Arc(one.name, node.name) for one in dict.fromkeys(used)]
    film.shot(say, rows, arcs)
