"""What is measured, one function an operation, and the goal of each.

A function gets a library and a size and returns the `Task` that is timed;
both libraries must end with equal results. Its docstring is the caption
under the table: what program is measured.

    @benchmark(at_least(2))
    def graph_copy(lib: Library, size: int) -> Task:
        '''Graph.graph_copy of the mixed chain into an empty graph.'''

`beside=` is the place for a third program that runs in the same rounds: a
floor (`compile()` alone, eager execution) or the plain version of something
that fx does in a clever way, so that the table shows what the cleverness is
worth.
"""

from __future__ import annotations

import builtins
import contextlib
import copy
import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal
from unittest import mock

import torch
from torch import Tensor, nn

from tests.benchmarks import bare, programs
from tests.benchmarks.measure import A_CALL, A_NODE, BYTES, Made, Task, Unit
from tests.parity.harness import plain

# -- libraries -------------------------------------------------------------


@dataclass(frozen=True)
class Library:
    """`torch.fx` or `fx`, by its import path; their files have one layout."""

    name: str

    def module(self, path: str) -> Made:
        """A file of the library, such as "passes.shape_prop"."""
        return importlib.import_module(f"{self.name}.{path}")

    @property
    def root(self) -> Made:
        """The package itself."""
        return importlib.import_module(self.name)

    def trace(self, root: nn.Module) -> Made:
        """The graph of a module."""
        return self.root.Tracer().trace(root)

    def compiled(self, root: nn.Module) -> Made:
        """A new GraphModule that does what a module does."""
        graph_module = self.module("graph_module").GraphModule
        return graph_module(root, self.trace(root))


TORCH = Library("torch.fx")
OURS = Library("fx")


# -- goals -----------------------------------------------------------------


@dataclass(frozen=True)
class Goal:
    """What an operation shall reach.

    Attributes:
        bound: the number to reach.
        of: it is the ratio torch/ours, at least; or our own number, at most.
        floors: so many times what runs beside both is good enough, too.
    """

    bound: float
    of: Literal["ratio", "ours"] = "ratio"
    floors: float = 0

    def reached(
        self, ratio: float, ours: float, beside: float | None = None
    ) -> float:
        """How much of the goal is reached: 1 is all of it, 2 twice that."""
        share = ratio / self.bound if self.of == "ratio" else self.bound / ours
        return max(share, self.floors * (beside or 0) / ours)

    def __str__(self) -> str:
        """As the table shows it."""
        return f"{'≥' if self.of == 'ratio' else '≤'} {self.bound:g}"


def at_least(ratio: float) -> Goal:
    """Be so many times as fast as torch.fx."""
    return Goal(ratio)


def at_most(ours: float) -> Goal:
    """Take no more than this, whatever torch.fx takes."""
    return Goal(ours, "ours")


def no_slower(ratio: float = 1 / 1.5) -> Goal:
    """Take 1.5 times as long as torch.fx at most, or 1.3 times the floor."""
    return Goal(round(ratio, 2), floors=1.3)


# -- the register ----------------------------------------------------------


@dataclass(frozen=True)
class Beside:
    """A third program that runs in the same rounds, for comparison.

    Attributes:
        label: what it is.
        make: the task at a size.
        subtract: what it takes is taken off both libraries' numbers.
    """

    label: str
    make: Callable[[int], Task]
    subtract: bool = False


@dataclass(frozen=True)
class Benchmark:
    """An operation that is measured.

    Attributes:
        name: what `--only` selects by.
        make: the task of a library at a size.
        caption: what program is measured.
        goals: size -> goal; a size without one has that of None.
        sizes: what is measured, in nodes.
        full: further sizes, with `--full`.
        unit: what is measured.
        beside: what is measured beside both.
    """

    name: str
    make: Callable[[Library, int], Task]
    caption: str
    goals: Mapping[int | None, Goal]
    sizes: Sequence[int]
    full: Sequence[int]
    unit: Unit
    beside: Beside | None

    def goal(self, size: int) -> Goal | None:
        """What shall be reached at a size."""
        return self.goals.get(size, self.goals.get(None))

    def seen(self, lib: Library, size: int) -> object:
        """What comes out when a library does it, as plain data."""
        task = self.make(lib, size)
        return plain(task.show(task.run(task.setup())))


def _by_size(
    goal: Goal | Mapping[int | None, Goal] | None,
) -> Mapping[int | None, Goal]:
    """Size -> goal; one that is for all sizes has None."""
    return {None: goal} if isinstance(goal, Goal) else goal or {}


@contextlib.contextmanager
def _compiling_nothing(lib: Library) -> Iterator[None]:
    """Have a library's `compile` make a function that does nothing."""
    compiled = builtins.compile

    def nothing(source: Made, name: str, *rest: Made, **named: Made) -> Made:
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if caller.startswith(f"{lib.name}."):
            source = "def forward(self, *args): pass"
        return compiled(source, name, *rest, **named)

    with mock.patch.object(builtins, "compile", nothing):
        yield


def _without_compile(
    make: Callable[[Library, int], Task], lib: Library, size: int
) -> Task:
    """A task in which the library's compile() does nothing."""
    task = make(lib, size)

    def run(given: Made) -> Made:
        with _compiling_nothing(lib):
            return task.run(given)

    return replace(task, run=run)


BENCHMARKS: dict[str, Benchmark] = {}
"""All operations by name, in the order of the stages."""


def benchmark(
    goal: Goal | Mapping[int | None, Goal] | None,
    *,
    sizes: Sequence[int] = (1_000, 10_000),
    full: Sequence[int] = (100_000,),
    unit: Unit = A_NODE,
    alone: Goal | Mapping[int | None, Goal] | None = None,
    beside: Beside | None = None,
) -> Callable[[Callable[[Library, int], Task]], Callable[[Library, int], Task]]:
    """Register an operation under its function's name.

    Args:
        goal: for all sizes, or by size; None if there is none.
        sizes: what is measured, in nodes.
        full: further sizes, with `--full`.
        unit: what is measured.
        alone: the goal without `compile`, which takes as long for either
            library: then there is a second benchmark, whose name ends so.
        beside: what is measured beside both.
    """

    def register(
        make: Callable[[Library, int], Task],
    ) -> Callable[[Library, int], Task]:
        name = make.__name__.replace("_", "-")
        caption = " ".join((make.__doc__ or "").split())
        if not caption or name in BENCHMARKS:
            raise ValueError(f"{name}: no docstring, or twice the same name")
        BENCHMARKS[name] = Benchmark(
            name, make, caption, _by_size(goal), sizes, full, unit, beside
        )
        if alone is not None:
            other, caption = f"{name}-alone", f"{name}, without compile()."
            rest = _by_size(alone), sizes, (), unit, None
            made = partial(_without_compile, make)
            BENCHMARKS[other] = Benchmark(other, made, caption, *rest)
        return make

    return register


def select(
    beginnings: Iterable[str], benchmarks: Mapping[str, Benchmark]
) -> list[Benchmark]:
    """The benchmarks whose names begin with one of these; all if none.

    Raises:
        ValueError: no name begins so.
    """
    wanted: set[str] = set()
    for beginning in beginnings:
        found = [name for name in benchmarks if name.startswith(beginning)]
        if not found:
            known = ", ".join(benchmarks)
            raise ValueError(
                f"no benchmark is {beginning!r}; there are {known}"
            )
        wanted.update(found)
    return [
        each
        for name, each in benchmarks.items()
        if name in wanted or not wanted
    ]


# -- stages 01 and 02: graphs ----------------------------------------------


def _text(graph: Made) -> str:
    """The printed graph."""
    return str(graph)


@benchmark(at_least(2))
def graph_copy(lib: Library, size: int) -> Task:
    """Graph.graph_copy of the mixed chain into an empty graph."""
    graph = lib.trace(programs.Mixed(size))

    def run(_: Made) -> Made:
        new = lib.root.Graph()
        new.output(new.graph_copy(graph, {}))
        return new

    return Task(run, len(graph.nodes), show=_text)


@benchmark(at_least(2))
def deepcopy(lib: Library, size: int) -> Task:
    """copy.deepcopy of the graph of the mixed chain."""
    graph = lib.trace(programs.Mixed(size))
    return Task(lambda _: copy.deepcopy(graph), len(graph.nodes), show=_text)


@benchmark(at_most(680), sizes=(10_000,), full=(), unit=BYTES)
def memory(lib: Library, size: int) -> Task:
    """What tracemalloc sees of a copy of the mixed chain by graph_copy.

    The copy was asked for a function once, so it has its table of them.
    """
    task = graph_copy(lib, size)

    def run(given: Made) -> Made:
        copied = task.run(given)
        copied.find_nodes(op="call_function", target=torch.relu)
        return copied

    return replace(task, run=run)


@benchmark(at_least(2))
def eliminate_dead_code(lib: Library, size: int) -> Task:
    """Graph.eliminate_dead_code of a chain with as many dead nodes as live.

    Each run has a fresh copy of the graph, which no module owns.
    """
    graph = lib.trace(programs.HalfDead(size))

    def run(fresh: Made) -> Made:
        fresh.eliminate_dead_code()
        return fresh

    return Task(run, len(graph.nodes), lambda: copy.deepcopy(graph), show=_text)


@benchmark(at_least(0.5))
def lint(lib: Library, size: int) -> Task:
    """Graph.lint of the mixed chain, in a GraphModule."""
    graph = lib.compiled(programs.Mixed(size)).graph
    return Task(lambda _: graph.lint(), len(graph.nodes))


# -- stages 03 and 04: tracing ---------------------------------------------


def _tracing(lib: Library, root: nn.Module) -> Task:
    """Trace a module, with a new Tracer each time."""
    nodes = len(lib.trace(root).nodes)
    return Task(lambda _: lib.trace(root), nodes, show=_text)


@benchmark(None, sizes=(8,), full=(), unit=A_CALL)
def trace_tiny(lib: Library, size: int) -> Task:
    """Tracer().trace of eight nodes: what each trace costs beforehand."""
    module = programs.Mixed(size)
    return Task(lambda _: lib.trace(module), 1, show=_text)


@benchmark(at_least(4))
def trace_mixed(lib: Library, size: int) -> Task:
    """Tracer().trace of the mixed chain.

    Functions of torch, operators, methods with and without keywords, and
    two parameters that are read again and again, in turn.
    """
    return _tracing(lib, programs.Mixed(size))


@benchmark(at_least(5))
def trace_functions(lib: Library, size: int) -> Task:
    """Tracer().trace of a chain of torch functions alone."""
    return _tracing(lib, programs.Functions(size))


@benchmark(at_least(3))
def trace_operators(lib: Library, size: int) -> Task:
    """Tracer().trace of a chain of Python operators alone."""
    return _tracing(lib, programs.Operators(size))


def _bare_tracing(size: int) -> Task:
    """Trace the tree with a tracer that checks nothing."""
    root = programs.Nested(size)
    nodes = len(bare.Tracer().trace(root).nodes())
    return Task(lambda _: bare.Tracer().trace(root), nodes)


@benchmark(Goal(4, floors=1.3), beside=Beside("floor", _bare_tracing))
def trace_modules(lib: Library, size: int) -> Task:
    """Tracer().trace of a binary tree of modules with Linear and ReLU leaves.

    There are as many user modules, which are traced through, as leaves, which
    are nodes. The tree has 1,000 leaves, ten modules deep; for more nodes
    it is run several times.
    """
    return _tracing(lib, programs.Nested(size))


# -- stage 05: code --------------------------------------------------------


def _compile_alone(size: int) -> Task:
    """Let Python compile what torch.fx writes for the mixed chain."""
    graph = TORCH.trace(programs.Mixed(size))
    source = graph.python_code("self").src
    return Task(
        lambda _: builtins.compile(source, "<benchmark>", "exec"),
        len(graph.nodes),
    )


@benchmark(at_least(3))
def python_code(lib: Library, size: int) -> Task:
    """Graph.python_code of the mixed chain."""
    graph = lib.compiled(programs.Mixed(size)).graph
    return Task(lambda _: graph.python_code("self").src, len(graph.nodes))


@benchmark(
    at_least(1.6),
    beside=Beside("compile() alone", _compile_alone),
)
def recompile(lib: Library, size: int) -> Task:
    """GraphModule.recompile of the mixed chain, whose last code was another."""
    module = lib.compiled(programs.Mixed(size))
    return Task(
        lambda _: module.recompile(),
        len(module.graph.nodes),
        lambda: out_of_date(module),
        lambda _: module.code,
    )


@benchmark(at_least(2), full=())
def recompile_unchanged(lib: Library, size: int) -> Task:
    """GraphModule.recompile of the mixed chain, in which nothing has changed.

    Ours keeps code that would be the same again.
    """
    module = lib.compiled(programs.Mixed(size))
    return Task(
        lambda _: module.recompile(),
        len(module.graph.nodes),
        show=lambda _: module.code,
    )


def out_of_date(module: Made) -> None:
    """Let a GraphModule have other code than what its graph is."""
    node = next(iter(module.graph.nodes)).next
    name, node.name = node.name, "other"
    module.recompile()
    node.name = name


_CALLS = 1_000


def _calling(module: nn.Module) -> Task:
    """Call a module again and again."""
    x = torch.ones(1)

    def run(_: Made) -> Tensor:
        result = x
        for _ in range(_CALLS):
            result = module(x)
        return result

    return Task(run, _CALLS)


@benchmark(
    at_least(1),
    sizes=(1,),
    full=(),
    unit=A_CALL,
    beside=Beside("an nn.Module", lambda _: _calling(programs.Identity())),
)
def call(lib: Library, size: int) -> Task:
    """Calling a GraphModule that returns its input: what a call adds."""
    return _calling(lib.compiled(programs.Identity()))


# -- stage 06: interpreting ------------------------------------------------


def _line(node: Made) -> str:
    """A node without its type."""
    return f"{node.name} = {node.op} {node.target} {node.args} {node.kwargs}"


_X = torch.tensor([-1.0, 0.5, 1.0, 2.0])


def _eager(size: int) -> Task:
    """Run the mixed chain without any fx."""
    module = programs.Mixed(size)
    nodes = len(TORCH.trace(module).nodes)
    return Task(torch.no_grad()(lambda _: module(_X)), nodes)


@benchmark(
    at_least(3),
    beside=Beside("eager alone", _eager, subtract=True),
)
def interpreter(lib: Library, size: int) -> Task:
    """Interpreter.run of the mixed chain on four numbers, less eager's time.

    The Interpreter is made once; gradients are off.
    """
    module = lib.compiled(programs.Mixed(size))
    made = lib.module("interpreter").Interpreter(module)
    return Task(
        torch.no_grad()(lambda _: made.run(_X)), len(module.graph.nodes)
    )


@benchmark(at_least(3))
def interpreter_on_a_number(lib: Library, size: int) -> Task:
    """Interpreter.run of the chain of Python operators on one float.

    What is computed takes next to nothing: this is what a node adds.
    """
    module = lib.compiled(programs.Operators(size))
    made = lib.module("interpreter").Interpreter(module)
    return Task(lambda _: made.run(0.25), len(module.graph.nodes), show=str)


@benchmark(
    None,
    alone=at_least(4.5),
    beside=Beside("compile() alone", _compile_alone),
)
def transformer(lib: Library, size: int) -> Task:
    """Transformer(module).transform() of the mixed chain, unchanged.

    What it makes is a GraphModule: compile() is in it. Compared is what the
    nodes do: ours keep their type annotations.
    """
    module = lib.compiled(programs.Mixed(size))
    make = lib.module("interpreter").Transformer
    return Task(
        lambda _: make(module).transform(),
        len(module.graph.nodes),
        show=lambda new: [_line(node) for node in new.graph.nodes],
    )


# -- stage 07: rewriting ---------------------------------------------------


@benchmark(
    None,
    alone={1_000: at_least(3.5), 10_000: at_least(30), 20_000: at_least(60)},
    sizes=(1_000, 10_000, 20_000),
    full=(),
)
def replace_pattern(lib: Library, size: int) -> Task:
    """replace_pattern of relu(x) + 1 by sigmoid(x), n/4 matches in n nodes.

    Each run has a fresh copy of the module. What compile() takes is in it.
    """
    module = lib.compiled(programs.Matches(size))
    replace = lib.module("subgraph_rewriter").replace_pattern

    def run(fresh: Made) -> Made:
        replace(fresh, programs.pattern, programs.replacement)
        return fresh

    return Task(
        run,
        len(module.graph.nodes),
        lambda: copy.deepcopy(module),
        show=lambda new: new.code,
    )


@benchmark(at_least(2), full=())
def replace_pattern_no_match(lib: Library, size: int) -> Task:
    """replace_pattern of tanh(x) + 1, which is nowhere in those n nodes.

    What is looked for ends like a quarter of the nodes. The call recompiles
    the module all the same; ours keeps code that would be the same again.
    """
    module = lib.compiled(programs.Matches(size))
    replace = lib.module("subgraph_rewriter").replace_pattern

    def run(_: Made) -> Made:
        replace(module, programs.absent, programs.replacement)
        return module

    return Task(run, len(module.graph.nodes), show=lambda new: new.code)
