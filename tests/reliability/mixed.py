"""Whether a node of one library that meets a graph of the other is refused.

In a program that runs under `fx.as_torch` there are graphs of both libraries.
Each case is a random graph of one, of which something is done with a node or a
graph of the other: it is copied there, given as an argument in any container,
mapped over, or run by an interpreter.  What comes out has to be right or an
error: a graph that holds a node of the other library is neither.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from typing import Any, Final, TypeAlias

import torch
import torch.fx
from torch import nn

import fx
from fx.compat import readers
from tests.reliability.part import Outcome, Part, Plant

Anything: TypeAlias = Any

X: Final = torch.arange(6.0).reshape(2, 3) - 2

CALLS: Final[list[Callable[..., Anything]]] = [
    *(torch.relu, torch.sin, torch.neg, torch.add, torch.mul, sum),
]

HOLD: Final[list[Callable[[Anything], Anything]]] = [
    lambda node: node,
    lambda node: [node],
    lambda node: (1, (node,)),
    lambda node: {"k": [node, 2]},
    lambda node: slice(None, node),
]
"""How a node may stand among arguments."""


def graph_of(lib: Anything, rng: random.Random) -> Anything:
    """A random graph of a library."""
    graph = lib.Graph()
    nodes = [graph.placeholder("x")]
    for _ in range(rng.randint(1, 6)):
        call = rng.choice(CALLS)
        args = rng.choices(nodes, k=2 if call in CALLS[3:] else 1)
        given = (args,) if call is sum else tuple(args)
        nodes.append(graph.call_function(call, given))
    graph.output(rng.choice([nodes[-1], [nodes[-1], {"first": nodes[0]}]]))
    return graph


def module(graph: Anything) -> Anything:
    """A module of the graph's library."""
    lib = fx if type(graph) is fx.Graph else torch.fx
    return lib.GraphModule(nn.Module(), graph)


def same(one: Anything, two: Anything) -> str:
    """What is different between two results, as text."""
    return "" if str(one) == str(two) else f"{two}, and not {one}"


def foreign(graph: Anything) -> str:
    """What a graph has that is not of its own library."""
    kinds = fx.Node, torch.fx.Node
    own = type(next(iter(graph.nodes)))
    found: list[Anything] = []

    def look(value: Anything) -> None:
        if type(value) in kinds and type(value) is not own:
            found.append(value)
        elif isinstance(value, (list, tuple)):
            for each in value:
                look(each)
        elif isinstance(value, dict):
            look([*value.values()])
        elif isinstance(value, slice):
            look((value.start, value.stop, value.step))

    for node in graph.nodes:
        look((node.args, dict(node.kwargs), [*node.users]))
    return f"{found} in {graph}" if found else ""


def assigned(here: Anything, there: Anything, rng: random.Random) -> str:
    """A node of another graph becomes an argument, in some way."""
    node = rng.choice([n for n in here.nodes if n.op == "call_function"])
    value = rng.choice(HOLD)(rng.choice([*there.nodes]))
    ways: list[Callable[[], object]] = [
        lambda: setattr(node, "args", (value,)),
        lambda: setattr(node, "kwargs", {"k": value}),
        lambda: here.call_function(torch.relu, (value,)),
        lambda: here.call_function(torch.relu, (), {"k": value}),
        lambda: node.update_arg(0, value),
        lambda: node.insert_arg(0, value),
        lambda: node.replace_all_uses_with(next(iter(there.nodes))),
        lambda: here.output(value),
    ]
    rng.choice(ways)()
    return foreign(here)


def copied(here: Anything, there: Anything, rng: random.Random) -> str:
    """A whole graph is copied into a new one of the other library."""
    new = type(here)()
    copies: dict[Anything, Anything] = {}
    if rng.random() < 0.5:
        new.output(new.graph_copy(there, copies))
    else:
        for node in there.nodes:
            copies[node] = new.node_copy(node, lambda n: copies[n])
    return foreign(new) or same(module(there)(X), module(new)(X))


def run_here(here: Anything, there: Anything, rng: random.Random) -> str:
    """An interpreter of fx runs a graph of either."""
    made = module(there)
    seen = []

    class Noting(fx.Interpreter):
        def run_node(self, n: Anything) -> Anything:
            seen.append(n)
            return super().run_node(n)

    result = rng.choice([Noting, fx.Transformer])(made)
    if isinstance(result, fx.Transformer):
        return same(made(X), result.transform()(X))
    problem = same(made(X), result.run(X))
    return problem or same([*there.nodes], seen)


def mapped(here: Anything, there: Anything, rng: random.Random) -> str:
    """A program maps over arguments, and asks what a node is."""
    for node in there.nodes:
        found: list[Anything] = []
        fx.map_arg((node.args, node.kwargs), found.append)
        problem = same(set(node.all_input_nodes), set(found))
        if problem or not isinstance(node, fx.Node):
            return problem or f"{node} is no node"
    return "" if isinstance(module(there), fx.GraphModule) else "no module"


def owned(here: Anything, there: Anything, rng: random.Random) -> str:
    """A module gets another graph, which may be of the other library."""
    made = module(here)
    want = module(there)(X)
    if rng.random() < 0.5:
        made.graph = there
    else:
        made = fx.GraphModule(nn.Module(), there)
    return foreign(made.graph) or same(want, made(X))


ACTS: Final = [assigned, assigned, copied, run_here, mapped, owned]


def difference(seed: int) -> str:
    """What is silently wrong in one case, or ""."""
    rng = random.Random(seed)
    pair = [fx, torch.fx]
    rng.shuffle(pair)
    here, there = (graph_of(lib, rng) for lib in pair)
    act = rng.choice(ACTS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return act(here, there, rng)
    except (TypeError, RuntimeError, AssertionError) as error:
        # What only reads a graph, or copies it into one of fx, does it.
        may = act in (assigned, owned) or (act is copied and pair[0] is not fx)
        is_told = may and len(str(error)) > 30
        return "" if is_told else f"{act.__name__}: {error!r}"


def run(seed: int, cases: int) -> Iterator[Outcome]:
    """Mix `cases` times, in a process that goes on with both libraries."""
    rng = random.Random(seed)
    seeds = [rng.randrange(10**9) for _ in range(cases)]
    with get_context("fork").Pool(1, readers.install) as pool:
        for case, found in zip(
            seeds, pool.imap(difference, seeds), strict=True
        ):
            yield Outcome(f"seed {case}", found)


HERE = "fx/compat/readers.py"

PART = Part(
    "mixed",
    "nodes and graphs of one library in graphs, modules and interpreters of "
    "the other, under `fx.as_torch`",
    run,
    share=300,
    long=20_000,
    plants=(
        Plant(
            HERE,
            "        if found is not None:\n",
            "        if False:\n",
            "a graph of torch.fx takes a node of fx for a constant",
        ),
        Plant(
            HERE,
            "    both = (Node, torch.fx.Node)\n",
            "    both = (Node,)\n",
            "map_arg returns nodes of torch.fx as they are",
        ),
    ),
)
