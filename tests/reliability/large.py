"""Chains, trees and stars of many nodes: built, edited, run, saved.

Nothing may recurse with the depth of a graph, or take a time that grows faster
than its size. A case is a shape, a size and an operation, and each has its own
check of the result.
"""

from __future__ import annotations

import copy
import gc
import operator
import pickle
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import torch.fx

import fx
from tests.reliability.part import Outcome, Part, Plant

Lib: TypeAlias = Any
"""`torch.fx` or `fx`, or something of one of them."""

AnyValue: TypeAlias = Any


def chain(graph: Lib, nodes: int) -> int:
    """Add 1 to x again and again; what that is for x = 0."""
    value = graph.placeholder("x")
    for _ in range(nodes):
        value = graph.call_function(operator.add, (value, 1))
    graph.output(value)
    return nodes


def tree(graph: Lib, nodes: int) -> int:
    """Leaves x + 1, added in pairs up to one sum."""
    x = graph.placeholder("x")
    leaves = nodes // 2
    values = [graph.call_function(operator.add, (x, 1)) for _ in range(leaves)]
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=False)
        sums = [graph.call_function(operator.add, pair) for pair in pairs]
        values = sums + values[len(sums) * 2 :]
    graph.output(values[0])
    return leaves


def star(graph: Lib, nodes: int) -> int:
    """Calls of x + 1; one call takes all of them."""
    x = graph.placeholder("x")
    values = [graph.call_function(operator.add, (x, 1)) for _ in range(nodes)]
    graph.output(graph.call_function(sum, (values,)))
    return nodes


Shape: TypeAlias = Callable[[Lib, int], int]
SHAPES: tuple[Shape, ...] = (chain, tree, star)


def _built(lib: Lib, shape: Shape, nodes: int) -> tuple[Lib, int]:
    graph = lib.Graph()
    return graph, shape(graph, nodes)


def build(lib: Lib, graph: Lib, right: int) -> bool:
    """Every node is there, once, both ways."""
    nodes = list(graph.nodes)
    backwards = list(reversed(graph.nodes))
    names = {node.name for node in nodes}
    return len(names) == len(nodes) == len(graph.nodes) == len(backwards)


def copied(lib: Lib, graph: Lib, right: int) -> bool:
    """A deep copy is the same program on other nodes."""
    new = copy.deepcopy(graph)
    same = [node.name for node in new.nodes] == [n.name for n in graph.nodes]
    return same and _runs(lib, new, right)


def lint(lib: Lib, graph: Lib, right: int) -> bool:
    """A right graph passes."""
    graph.lint()
    return True


def dead(lib: Lib, graph: Lib, right: int) -> bool:
    """All calls are dead once the output returns the input."""
    x, *_, output = graph.nodes
    output.args = (x,)
    graph.eliminate_dead_code()
    return [node.op for node in graph.nodes] == ["placeholder", "output"]


def printed(lib: Lib, graph: Lib, right: int) -> bool:
    """Each node but the output has a line."""
    return len(str(graph).splitlines()) == len(graph.nodes) + 1


def replaced(lib: Lib, graph: Lib, right: int) -> bool:
    """Each call is replaced by another; ten of them where one call uses all.

    A replacement costs as much as its users have arguments.
    """
    calls = graph.find_nodes(op="call_function", target=operator.add)
    is_star = bool(graph.find_nodes(op="call_function", target=sum))
    chosen = calls[:10] if is_star else calls
    for node in chosen:
        with graph.inserting_before(node):
            new = graph.call_function(torch.add, node.args)
        node.replace_all_uses_with(new)
        graph.erase_node(node)
    graph.lint()
    left = graph.find_nodes(op="call_function", target=operator.add)
    return bool(left == calls[len(chosen) :])


def _runs(lib: Lib, graph: Lib, right: int) -> bool:
    values: dict[Lib, AnyValue] = {}
    for node in graph.nodes:
        if node.op == "placeholder":
            values[node] = 0
        elif node.op == "output":
            return bool(values[node.args[0]] == right)
        else:
            args = lib.node.map_arg(node.args, values.__getitem__)
            values[node] = node.target(*args)
    return False


def interpreted(lib: Lib, graph: Lib, right: int) -> bool:
    """The Interpreter gives the sum."""
    gm = torch.nn.Module()
    return bool(lib.Interpreter(gm, graph=graph).run(0) == right)


def compiled(lib: Lib, graph: Lib, right: int) -> bool:
    """The generated code gives the sum."""
    return bool(lib.GraphModule({}, graph)(0) == right)


def pickled(lib: Lib, graph: Lib, right: int) -> bool:
    """A graph module comes back from its pickle."""
    gm = pickle.loads(pickle.dumps(lib.GraphModule({}, graph)))
    return bool(gm(0) == right)


Operation: TypeAlias = Callable[[Lib, Lib, int], bool]
SIMPLE: tuple[Operation, ...] = (
    *(build, copied, lint, dead, printed, replaced, interpreted),
)
COMPILING: tuple[Operation, ...] = (compiled, pickled)
"""What ends in Python's compiler, whose own time is most of it."""

SIZES = ((8_000, 2_000), (1_000_000, 200_000))
"""Nodes for the simple operations and for those that compile."""

THEIRS_TOO = 8_000
"""Nodes up to which torch.fx is asked."""


def tried(lib: Lib, shape: Shape, act: Operation, nodes: int) -> str:
    """What is wrong with an operation on a graph, if anything."""
    try:
        graph, right = _built(lib, shape, nodes)
        return "" if act(lib, graph, right) else "the result is wrong"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:500]}"


def _growth(act: Operation, shape: Shape, nodes: int) -> str:
    """What is wrong if four times the nodes take eight times as long."""
    times = []
    for size in (nodes // 4, nodes):
        gc.collect()
        gc.disable()  # what earlier cases left would be counted here
        try:
            start = time.process_time()
            graph, right = _built(fx, shape, size)
            act(fx, graph, right)
            times.append(time.process_time() - start)
        finally:
            gc.enable()
    if times[1] > 8 * times[0] + 0.5:
        return f"{times[0]:.2f} s, and {times[1]:.2f} s for four times as many"
    return ""


def run(seed: int, cases: int) -> Iterator[Outcome]:
    """Each operation on each shape, first the smaller sizes."""
    every = [
        (shape, act, simple if act in SIMPLE else compiling)
        for simple, compiling in SIZES
        for shape in SHAPES
        for act in (*SIMPLE, *COMPILING)
    ]
    for shape, act, nodes in every[:cases]:
        ours, theirs = tried(fx, shape, act, nodes), None
        if nodes <= THEIRS_TOO:
            ours = ours or _growth(act, shape, nodes)
            theirs = tried(torch.fx, shape, act, nodes)
        case = f"{act.__name__}, a {shape.__name__} of {nodes:,} nodes"
        yield Outcome(case, ours, theirs)


PART = Part(
    "large",
    "chains, trees and stars of 8,000 and 1,000,000 nodes (compiled: 2,000 "
    "and 200,000): the result, and that nothing recurses or is quadratic",
    run,
    share=9,
    long=54,
    plants=(
        Plant(
            "fx/linked_list/linked_list.py",
            "self._len -= 1\n",
            "self._len -= 1\n        sum(1 for _ in self)\n",
            "an erased node costs a walk over all others",
        ),
        Plant(
            "fx/linked_list/namespace.py",
            "        counts[base] = number\n",
            "        counts[base] = 0\n",
            "a free name is sought from the beginning",
        ),
    ),
)
