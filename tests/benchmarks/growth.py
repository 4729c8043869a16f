"""How the time grows with the graph: from a thousand to a million nodes.

Python's own `compile` is left aside: it takes as long for either library, and
a function of a million lines is nobody's wish. All else that a call does is
measured: matching, editing, writing the new source.

    python -m tests.benchmarks --growth
"""

from __future__ import annotations

import builtins
import contextlib
import pickle
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from unittest import mock

from tests.benchmarks import bare, programs
from tests.benchmarks.measure import Made, Task, collector_off, seconds
from tests.benchmarks.operations import BENCHMARKS, OURS, TORCH, Library

__all__ = [
    "SIZES",
    "Growth",
    "grown",
    "scale_table",
    "table",
    "verdict",
    "without_compile",
]

SIZES: Final = {
    OURS: (1_000, 10_000, 100_000, 1_000_000),
    TORCH: (1_000, 10_000),
}
"""torch.fx takes time that grows with the square: its third size would take
minutes, its fourth hours."""

_GROWTH: Final = 1.3
"""How many times as long a node may take as in the smallest graph."""

_WIDE: Final = "replace an input, wide"
"""Each user of one node gets another input."""

_CAPTION: Final = """\
replace_pattern of relu(x) + 1 by sigmoid(x) in a chain of relu, + 1, tanh, * 2:
n/4 matches in n nodes. Python's compile() is left aside. Each run has a module
that was traced for it; shown is the median of the runs."""


@dataclass(frozen=True)
class Growth:
    """What replace_pattern took at one size.

    Attributes:
        name: of the library.
        size: in nodes.
        times: of each run, in seconds.
    """

    name: str
    size: int
    times: Sequence[float]

    @property
    def a_node(self) -> float:
        """Microseconds a node, the median of the runs."""
        return statistics.median(self.times) / self.size * 1e6


@contextlib.contextmanager
def without_compile(lib: Library) -> Iterator[None]:
    """Have a library's `compile` make a function that does nothing."""
    compiled = builtins.compile

    def nothing(source: Made, name: str, *rest: Made, **named: Made) -> Made:
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if caller.startswith(f"{lib.name}."):
            source = "def forward(self, *args): pass"
        return compiled(source, name, *rest, **named)

    with mock.patch.object(builtins, "compile", nothing):
        yield


def grown(lib: Library, size: int, runs: int | None = None) -> Growth:
    """Measure a library at one size.

    Args:
        lib: the library.
        size: in nodes.
        runs: how often; by default once for large graphs, nine times for
            small ones.

    Raises:
        AssertionError: not every match was replaced.
    """
    replace = lib.module("subgraph_rewriter").replace_pattern

    def run(module: Made) -> None:
        found = replace(module, programs.pattern, programs.replacement)
        if len(found) != size // 4:
            raise AssertionError(f"{lib.name}: not all matches were replaced")

    def make() -> Made:
        return lib.compiled(programs.Matches(size))

    with without_compile(lib):
        runs = runs or max(1, min(9, 300_000 // size))
        task = Task(run, size, make)
        with collector_off():
            times = [seconds(task) for _ in range(runs)]
    return Growth(lib.name, size, times)


def _stored(size: int) -> tuple[Task, Task]:
    """Pickle the graph of the mixed chain, and read it again."""
    graph = OURS.trace(programs.Mixed(size))
    data = pickle.dumps(graph)
    return (
        Task(lambda _: pickle.dumps(graph), size),
        Task(lambda _: pickle.loads(data), size),
    )


def _wide(size: int) -> Task:
    """Replace an input of each of so many users of one node."""
    graph = OURS.root.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    users = [graph.call_function(abs, (x,)) for _ in range(size)]

    def run(_: Made) -> None:
        for user in users:
            user.replace_input_with(x, y)
        for user in users:
            user.replace_input_with(y, x)

    return Task(run, 2 * size)


def _bare_graph(root: Made) -> bare.Graph:
    """The graph of a module, made of bare nodes."""
    graph = bare.Graph()
    new: dict[Made, bare.Node] = {}
    for node in OURS.trace(root).nodes:
        args = tuple([new[value] for value in node.all_input_nodes])
        new[node] = graph.create_node(node.op, node.name, args, {})
    return graph


def _verified(graph: bare.Graph) -> None:
    """What no `lint` can do without: names in a table, both ends of a use."""
    nodes = graph.nodes()
    names: dict[str, bare.Node] = {}
    for node in nodes:
        assert names.setdefault(node.name, node) is node
    for node in nodes:
        for value in node.inputs:
            assert node in value.users
        for user in node.users:
            assert node in user.inputs


def _interpreted(graph: bare.Graph) -> None:
    """What no `Interpreter` can do without: values, freed when last used."""
    nodes = graph.nodes()
    last = {node: user for user in nodes for node in user.inputs}
    values: dict[bare.Node, float] = {}
    for node in nodes:
        values[node] = sum(values[value] for value in node.inputs)
        for used in node.inputs:
            if last[used] is node:
                del values[used]


def _copied(graph: bare.Graph) -> bare.Graph:
    """What no copy can do without: each new node, by its old one and its id."""
    new = bare.Graph()
    copies: dict[bare.Node, bare.Node] = {}
    for node in graph.nodes():
        args = tuple([copies[value] for value in node.inputs])
        copies[node] = new.create_node(node.op, node.target, args, {})
    dict(zip(map(id, copies), copies.values(), strict=True))
    return new


def _eliminated(graph: bare.Graph) -> bare.Graph:
    """What no removal of dead code can do without: users lose a node.

    And nothing is removed from a graph that is broken, so it looks first.
    """
    _verified(graph)
    node = graph.root.prev
    while node is not graph.root:
        if not node.users and node.op != "output":
            for value in node.inputs:
                del value.users[node]
            node.prev.next, node.next.prev = node.next, node.prev
        node = node.prev
    return graph


def _bare_fan(size: int) -> bare.Graph:
    """Two inputs, and so many users of the first."""
    graph = bare.Graph()
    x, _ = [graph.create_node("placeholder", n, (), {}) for n in "xy"]
    for _ in range(size):
        graph.create_node("call_function", "abs", (x,), {})
    return graph


def _redirected(graph: bare.Graph) -> bare.Graph:
    """What no new input can do without: each node leaves and joins users."""
    x, y, *nodes = graph.nodes()
    for old, new in ((x, y), (y, x)):
        for node in nodes:
            node.args = node.inputs = tuple(
                [new if arg is old else arg for arg in node.args]
            )
            del old.users[node]
            new.users[node] = None
    return graph


def _saved(graph: bare.Graph) -> bytes:
    """What no file can do without: what each node is, and which it uses."""
    nodes = graph.nodes()
    places = {node: place for place, node in enumerate(nodes)}
    return pickle.dumps(
        [
            (node.op, node.target, tuple([places[v] for v in node.inputs]))
            for node in nodes
        ]
    )


def _loaded(data: bytes) -> bare.Graph:
    """What no reading of a file can do without: new nodes, by their place."""
    graph = bare.Graph()
    nodes: list[bare.Node] = []
    for op, target, places in pickle.loads(data):
        args = tuple([nodes[place] for place in places])
        nodes.append(graph.create_node(op, target, args, {}))
    return graph


_FLOORS: Final[Mapping[str, Callable[[Made], Made]]] = {
    "deepcopy": _copied,
    "lint": _verified,
    "eliminate-dead-code": _eliminated,
    "interpreter-on-a-number": _interpreted,
    "save": _saved,
    "load": _loaded,
    _WIDE: _redirected,
}
"""What a million nodes and their tables, which no cache holds, cost by
themselves: the same programs, without any check."""


def _bare(size: int) -> Iterator[tuple[str, Task]]:
    """The floors at one size; afterwards their nodes are freed."""
    mixed = _bare_graph(programs.Mixed(size))
    operators = _bare_graph(programs.Operators(size))
    data, fan = _saved(mixed), _bare_fan(size)
    setups: dict[str, Callable[[], Made]] = {
        "eliminate-dead-code": lambda: _bare_graph(programs.HalfDead(size)),
        "interpreter-on-a-number": lambda: operators,
        "load": lambda: data,
        _WIDE: lambda: fan,
    }
    for name, floor in _FLOORS.items():
        setup = setups.get(name, lambda: mixed)
        count = 2 * size if name == _WIDE else size
        yield _floor_of(name), Task(floor, count, setup)


def _scaled(size: int) -> Iterator[tuple[str, Task]]:
    """What `scale_table` measures at one size, one after another."""
    yield from _bare(size)
    for name in _SCALED:
        yield name, BENCHMARKS[name].make(OURS, size)
    save, load = _stored(size)
    yield "save", save
    yield "load", load
    yield _WIDE, _wide(size)


def _floor_of(name: str) -> str:
    """The name of the floor of an operation."""
    return f"{name}, floor"


_SCALED: Final = (
    "trace-functions",
    "trace-mixed",
    "deepcopy",
    "lint",
    "eliminate-dead-code",
    "interpreter-on-a-number",
)


def scale_table(
    sizes: Sequence[int] = (10_000, 100_000, 1_000_000), most: int = 7
) -> Iterator[str]:
    """The lines of the table of other operations, as they are measured.

    An operation may take 1.3 times as long a node as in the smallest graph,
    and beyond that what its floor takes longer: a few lines that make the same
    tables of bare nodes.

    Args:
        sizes: what to measure, in nodes.
        most: how often to measure the smallest graphs.
    """
    yield "Other operations: µs a node of fx, without compile()\n"
    yield f"{'':<31}{'nodes':>10}{'µs/node':>9}{'growth':>8}  goal"
    yield "-" * 72
    first: dict[str, float] = {}
    now: dict[str, float] = {}
    with without_compile(OURS):
        for size in sizes:
            for name, task in _scaled(size):
                runs = max(1, min(most, 300_000 // size))
                with collector_off():
                    times = [seconds(task) for _ in range(runs)]
                a_node = statistics.median(times) / task.count * 1e6
                now[name] = a_node
                growth = a_node / first.setdefault(name, a_node)
                yield (
                    f"{name:<31}{size:>10,}{a_node:>9.2f}{growth:>8.2f}"
                    f"{verdict(name, first, now)}"
                )


def verdict(
    name: str, first: Mapping[str, float], now: Mapping[str, float]
) -> str:
    """What the table says of an operation: its goal and "met" or "MISSED".

    Args:
        name: an operation; of a floor nothing is said.
        first: µs a node in the smallest graph, of operations and of floors.
        now: the same in a larger one.
    """
    floor = _floor_of(name)
    if name in map(_floor_of, _FLOORS):
        return ""
    more = now.get(floor, 0.0) - first.get(floor, 0.0)
    goal = _GROWTH + max(0.0, more) / first[name]
    met = now[name] <= goal * first[name]
    return f"{goal:>6.2f} {'met' if met else 'MISSED'}"


def table(sizes: dict[Library, tuple[int, ...]] = SIZES) -> Iterator[str]:
    """The lines of the table, each as soon as it is measured.

    Args:
        sizes: what to measure.
    """
    yield f"{_CAPTION}\n"
    yield f"{'':<10}{'nodes':>10}{'µs/node':>9}{'seconds':>9}{'growth':>8}"
    yield "-" * 46
    for lib, each in sizes.items():
        rows = []
        for size in each:
            rows.append(row := grown(lib, size))
            yield (
                f"{row.name:<10}{row.size:>10,}{row.a_node:>9.2f}"
                f"{statistics.median(row.times):>9.2f}"
                f"{row.a_node / rows[0].a_node:>8.2f}"
            )
    yield "growth: µs/node, as a multiple of the first size's"
