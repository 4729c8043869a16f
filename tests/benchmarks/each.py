"""What is measured of single operations: those of Graph, Node and arguments.

No operation shall take more than one and a half times as long as in torch.fx,
whose nodes and lists are C++.  Where Python cannot be as fast, a *floor* runs
beside both: a few lines of Python that change or read the same data, in plain
objects with slots, and check nothing.  Then 1.3 times the floor is enough.
"""

# ruff: noqa: B015, B018 -- what is only read is not used

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter

import torch

from fx.immutable_collections import immutable_dict, immutable_list
from tests.benchmarks.measure import Made, Task
from tests.benchmarks.operations import Beside, Library, benchmark, no_slower

_SIZE = (10_000,)
_each = functools.partial(benchmark, no_slower(), sizes=_SIZE, full=())


def _chain(lib: Library, size: int) -> Made:
    """A graph of functions with a constant and of methods, in turn."""
    graph = lib.root.Graph()
    value = graph.placeholder("x")
    for number in range(size - 2):
        if number % 2:
            value = graph.call_function(torch.add, (value, 1))
        else:
            value = graph.call_method("relu", (value,))
    graph.output(value)
    return graph


def _fan(lib: Library, size: int) -> Made:
    """A graph in which one node has nearly all others as its users."""
    graph = lib.root.Graph()
    x, last = graph.placeholder("x"), graph.placeholder("y")
    for _ in range(size - 3):
        last = graph.call_function(torch.add, (x, 1))
    graph.output(last)
    return graph


def _names(nodes: Sequence[Made]) -> str:
    """The names of nodes, and of their inputs."""
    return str([(node.name, node.args) for node in nodes])


def _all(graph: Made, run: Callable[[list[Made]], Made]) -> Task:
    """Do something with the list of all nodes; compare the graph."""
    nodes = list(graph.nodes)
    return Task(lambda _: run(nodes), len(nodes), show=lambda _: str(graph))


# -- the floors ------------------------------------------------------------


class _Bare:
    """A node without a graph: what a floor reads and writes."""

    __slots__ = ("_heard", "args", "inputs", "key", "next", "prev", "users")

    def __init__(self, *inputs: _Bare) -> None:
        self.args: tuple[object, ...] = (*inputs, 1)
        self.inputs = inputs
        self.users: dict[_Bare, None] = {}
        self.prev = self.next = self
        self.key = self._heard = 0
        for node in inputs:
            node.users[self] = None

    @property
    def heard(self) -> int:
        """A slot that is a property, because assigning it must be heard."""
        return self._heard

    def __lt__(self, other: object) -> bool:
        return isinstance(other, _Bare) and self.key < other.key

    def put(self, other: _Bare) -> None:
        """Move a node to the place before this one."""
        other.prev.next, other.next.prev = other.next, other.prev
        before = self.prev
        other.key = (before.key + self.key) // 2
        other.prev, other.next = before, self
        before.next = self.prev = other

    def swap(self, old: _Bare, new: _Bare) -> None:
        """Take another input."""
        self.args = tuple([new if arg is old else arg for arg in self.args])
        for node in self.inputs:
            del node.users[self]
        self.inputs = tuple([new if x is old else x for x in self.inputs])
        for node in self.inputs:
            node.users[self] = None


def _ring(size: int) -> list[_Bare]:
    """Bare nodes, each linked to the next."""
    nodes = [_Bare() for _ in range(size)]
    for key, (one, two) in enumerate(
        zip(nodes, nodes[1:] + nodes[:1], strict=True)
    ):
        one.next, two.prev, one.key = two, one, key << 20
    return nodes


def _bare_walk(root: _Bare) -> Iterator[_Bare]:
    node = root.next
    while node is not root:
        yield node
        node = node.next


def _walking(size: int) -> Task:
    """Walk over a ring of bare nodes."""
    root = _ring(size)[0]

    def run(_: Made) -> None:
        for _node in _bare_walk(root):
            pass

    return Task(run, size)


def _reading(attributes: int) -> Callable[[int], Task]:
    """Read some properties of bare nodes."""
    read = ["node.heard"] * attributes

    def make(size: int) -> Task:
        nodes = _ring(size)
        scope: dict[str, Made] = {}
        body = "\n        ".join(read)
        exec(f"def run(nodes):\n    for node in nodes:\n        {body}", scope)
        return Task(lambda _: scope["run"](nodes), size)

    return make


def _comparing(size: int) -> Task:
    """Ask which of two bare nodes comes first."""
    nodes = _ring(size)

    def run(_: Made) -> None:
        first = nodes[0]
        for node in nodes:
            first < node

    return Task(run, size)


def _sorting(size: int) -> Task:
    """Sort the half of the bare nodes that a dict holds."""
    held = dict.fromkeys(_ring(size)[::2])
    return Task(lambda _: sorted(held, key=attrgetter("key")), size)


def _moving(size: int) -> Task:
    """Move bare nodes."""
    nodes = _ring(size)
    return Task(lambda _: _swap_pairs(nodes, _Bare.put), size)


def _swapping(size: int) -> Task:
    """Replace an input of bare nodes."""
    x, y = _Bare(), _Bare()
    nodes = [_Bare(x) for _ in range(size)]

    def run(_: Made) -> None:
        for node in nodes:
            node.swap(x, y)
        for node in nodes:
            node.swap(y, x)

    return Task(run, size)


def _bare_map(a: Made, fn: Callable[[Made], Made]) -> Made:
    kind = type(a)
    if kind is tuple:
        return tuple([_bare_map(x, fn) for x in a])
    if kind is list:
        return immutable_list([_bare_map(x, fn) for x in a])
    if kind is dict:
        return immutable_dict([(k, _bare_map(a[k], fn)) for k in a])
    return fn(a)


_NESTED = ([1, 2, (3, 4)], {"a": 5, "b": [6, 7]}, 8.0, None)


def _mapping(size: int) -> Task:
    """Rebuild containers, knowing tuple, list and dict alone."""

    def run(_: Made) -> None:
        for _number in range(size):
            _bare_map(_NESTED, copy.copy)

    return Task(run, size)


# -- finding, reading, walking ---------------------------------------------


@_each()
def each_find_none(lib: Library, size: int) -> Task:
    """Graph.find_nodes of a function that is nowhere, once for each node."""
    graph = _chain(lib, size)

    def run(_: Made) -> None:
        for _number in range(size):
            graph.find_nodes(op="call_function", target=torch.sub)

    return Task(run, size)


@_each(beside=Beside("floor", _sorting))
def each_find_half(lib: Library, size: int) -> Task:
    """Graph.find_nodes of what half of the nodes call."""
    graph = _chain(lib, size)
    return Task(
        lambda _: graph.find_nodes(op="call_function", target=torch.add),
        size,
        show=_names,
    )


@_each(beside=Beside("floor", _reading(2)))
def each_read_target(lib: Library, size: int) -> Task:
    """Reading a node's op and target."""

    def run(nodes: list[Made]) -> None:
        for node in nodes:
            node.op
            node.target

    return _all(_chain(lib, size), run)


@_each(beside=Beside("floor", _reading(3)))
def each_read_args(lib: Library, size: int) -> Task:
    """Reading a node's name, args and kwargs."""

    def run(nodes: list[Made]) -> None:
        for node in nodes:
            node.name
            node.args
            node.kwargs

    return _all(_chain(lib, size), run)


@_each()
def each_input_nodes(lib: Library, size: int) -> Task:
    """Reading a node's inputs and users."""

    def run(nodes: list[Made]) -> None:
        for node in nodes:
            node.all_input_nodes
            len(node.users)

    return _all(_chain(lib, size), run)


def _loop(graph: Made, order: Callable[[Made], Iterator[Made]]) -> Task:
    """Do nothing with each node, in some order."""

    def run(_: Made) -> None:
        for _node in order(graph.nodes):
            pass

    return Task(run, len(graph.nodes), show=lambda _: str(graph))


@_each(beside=Beside("floor", _walking))
def each_walk(lib: Library, size: int) -> Task:
    """A loop over graph.nodes."""
    return _loop(_chain(lib, size), iter)


@_each(beside=Beside("floor", _walking))
def each_walk_back(lib: Library, size: int) -> Task:
    """A loop over reversed(graph.nodes)."""
    return _loop(_chain(lib, size), reversed)


@_each(beside=Beside("floor", _comparing))
def each_order(lib: Library, size: int) -> Task:
    """Comparing two nodes: which comes first?"""

    def run(nodes: list[Made]) -> None:
        first = nodes[0]
        for node in nodes:
            first < node

    return _all(_chain(lib, size), run)


@_each()
def each_is_impure(lib: Library, size: int) -> Task:
    """Node.is_impure of functions and methods."""
    graph = _chain(lib, size)
    nodes = [node for node in graph.nodes if node.op == "call_function"]
    nodes *= 2

    def run(_: Made) -> None:
        for node in nodes:
            node.is_impure()

    return Task(run, size)


# -- editing ---------------------------------------------------------------


@_each()
def each_create(lib: Library, size: int) -> Task:
    """Graph.call_function with an input and a constant."""

    def run(_: Made) -> Made:
        graph = lib.root.Graph()
        value = graph.placeholder("x")
        for _number in range(size - 1):
            value = graph.call_function(torch.add, (value, 1))
        return graph

    return Task(run, size, show=str)


@_each()
def each_set_args(lib: Library, size: int) -> Task:
    """Assigning node.args."""

    def run(nodes: list[Made]) -> None:
        for node in nodes:
            node.args = node.args

    return _all(_chain(lib, size), run)


@_each()
def each_update_arg(lib: Library, size: int) -> Task:
    """Node.update_arg."""

    def run(nodes: list[Made]) -> None:
        for node in nodes[1:]:
            node.update_arg(0, node.args[0])

    return _all(_chain(lib, size), run)


@_each()
def each_set_target(lib: Library, size: int) -> Task:
    """Assigning node.target in a graph that was asked to find nodes."""
    graph = _chain(lib, size)
    graph.find_nodes(op="call_method", target="relu")

    def run(nodes: list[Made]) -> None:
        for node in nodes:
            node.target = node.target

    return _all(graph, run)


@_each()
def each_rename(lib: Library, size: int) -> Task:
    """Assigning node.name."""

    def run(nodes: list[Made]) -> None:
        for node in nodes:
            node.name = node.name

    return _all(_chain(lib, size), run)


def _swap_pairs(nodes: list[Made], put: Callable[[Made, Made], object]) -> None:
    """Exchange neighbours, and exchange them again."""
    for number in range(1, len(nodes) - 2, 2):
        put(nodes[number], nodes[number + 1])
    for number in range(1, len(nodes) - 2, 2):
        put(nodes[number + 1], nodes[number])


@_each(beside=Beside("floor", _moving))
def each_prepend(lib: Library, size: int) -> Task:
    """Node.prepend of a node that is elsewhere in the list."""
    put = lib.module("node").Node.prepend
    graph = _chain(lib, size)
    return _all(graph, lambda nodes: _swap_pairs(nodes, put))


@_each()
def each_insert_point(lib: Library, size: int) -> Task:
    """A with block of graph.inserting_before."""
    graph = _chain(lib, size)

    def run(nodes: list[Made]) -> None:
        for node in nodes:
            with graph.inserting_before(node):
                pass

    return _all(graph, run)


@_each(beside=Beside("floor", _swapping))
def each_replace_input(lib: Library, size: int) -> Task:
    """Node.replace_input_with, of a node that all others use."""
    graph = _fan(lib, size)

    def run(nodes: list[Made]) -> None:
        x, y, *users = nodes[:-1]
        for user in users:
            user.replace_input_with(x, y)
        for user in users:
            user.replace_input_with(y, x)

    return _all(graph, run)


@_each(beside=Beside("floor", _swapping))
def each_replace_uses(lib: Library, size: int) -> Task:
    """Node.replace_all_uses_with of a node that all others use, and back."""

    def run(nodes: list[Made]) -> None:
        nodes[0].replace_all_uses_with(nodes[1])
        nodes[1].replace_all_uses_with(nodes[0])

    return _all(_fan(lib, size), run)


@_each()
def each_erase(lib: Library, size: int) -> Task:
    """Graph.erase_node of nodes without users."""

    def run(graph: Made) -> Made:
        for node in list(graph.nodes)[2:-2]:
            graph.erase_node(node)
        return graph

    return Task(run, size, lambda: _fan(lib, size), show=str)


@benchmark(no_slower(2), sizes=_SIZE, full=())
def each_dead_chain(lib: Library, size: int) -> Task:
    """Graph.eliminate_dead_code where all of a chain is dead."""

    def setup() -> Made:
        graph = _chain(lib, size)
        first, *_, output = graph.nodes
        output.args = (first,)
        return graph

    def run(graph: Made) -> Made:
        graph.eliminate_dead_code()
        return graph

    return Task(run, size, setup, show=str)


@_each()
def each_node_copy(lib: Library, size: int) -> Task:
    """Graph.node_copy into another graph."""
    nodes = list(_chain(lib, size).nodes)[1:-1]

    def run(_: Made) -> Made:
        graph = lib.root.Graph()
        value = graph.placeholder("x")
        for node in nodes:
            graph.node_copy(node, lambda _: value)
        return graph

    return Task(run, size, show=str)


# -- text and arguments ----------------------------------------------------


@benchmark(no_slower(), sizes=(1_000, 10_000), full=())
def each_print(lib: Library, size: int) -> Task:
    """str(graph)."""
    graph = _chain(lib, size)
    return Task(lambda _: str(graph), size)


@_each(beside=Beside("floor", _mapping))
def each_map_aggregate(lib: Library, size: int) -> Task:
    """map_aggregate of nine leaves in six containers."""
    walk = lib.module("node").map_aggregate

    def run(_: Made) -> Made:
        for _number in range(size - 1):
            walk(_NESTED, copy.copy)
        return walk(_NESTED, copy.copy)

    return Task(run, size, show=str)


@_each()
def each_normalized(lib: Library, size: int) -> Task:
    """Node.normalized_arguments of torch.add, given the arguments' types."""
    graph = _chain(lib, size)
    nodes = [node for node in graph.nodes if node.op == "call_function"]
    root, types = torch.nn.Module(), (torch.Tensor, int)

    def run(_: Made) -> Made:
        return [node.normalized_arguments(root, types) for node in nodes]

    return Task(run, size, show=str)
