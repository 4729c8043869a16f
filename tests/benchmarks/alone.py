"""What is measured without the work that both libraries leave to others.

Python's `compile`, and replacing the methods of nn.Module, take as long for
either, and hide what fx itself takes: see `growth`.
"""

from __future__ import annotations

import copy
from dataclasses import replace

import torch

from tests.benchmarks import programs
from tests.benchmarks.growth import without_compile
from tests.benchmarks.measure import A_CALL, Made, Task
from tests.benchmarks.networks import SIZES, patch_alone
from tests.benchmarks.operations import (
    BENCHMARKS,
    OURS,
    Beside,
    Library,
    at_least,
    benchmark,
)


def _alone(name: str, lib: Library, size: int) -> Task:
    """Another benchmark, in which the library's compile() does nothing."""
    task = BENCHMARKS[name].make(lib, size)

    def run(given: Made) -> Made:
        with without_compile(lib):
            return task.run(given)

    return replace(task, run=run)


def _trace_and_code(size: int) -> Task:
    """Our trace of the mixed chain, and our code for its graph.

    A transform records as many nodes and writes as much code. Where these two
    reach their goals, 4 and 3, both together reach 3.6.
    """
    module = programs.Mixed(size)

    def run(_: Made) -> Made:
        graph = OURS.trace(module)
        graph.python_code("self")
        return graph

    return Task(run, len(OURS.trace(module).nodes))


@benchmark(
    at_least(4.5),
    full=(),
    beside=Beside("our trace and our code alone", _trace_and_code),
)
def transformer_alone(lib: Library, size: int) -> Task:
    """Transformer(module).transform() of the mixed chain, without compile()."""
    return _alone("transformer", lib, size)


def edits_and_code(size: int) -> Task:
    """The same edits by hand, and our code for the graph.

    Nothing is compared with a pattern, and nothing can be put back.
    """
    module = OURS.compiled(programs.Matches(size))

    def run(fresh: Made) -> Made:
        graph = fresh.graph
        found = graph.find_nodes(op="call_function", target=torch.relu)
        for first in found:
            (last,) = first.users
            with graph.inserting_before(last):
                new = graph.call_function(torch.sigmoid, first.args)
            last.replace_all_uses_with(new)
            graph.erase_node(last)
            graph.erase_node(first)
        graph.python_code("self")
        return fresh

    return Task(run, len(module.graph.nodes), lambda: copy.deepcopy(module))


@benchmark(
    {1_000: at_least(3.5), 10_000: at_least(30), 20_000: at_least(60)},
    sizes=(1_000, 10_000, 20_000),
    full=(),
    beside=Beside("the same edits by hand and our code", edits_and_code),
)
def replace_pattern_alone(lib: Library, size: int) -> Task:
    """replace_pattern with n/4 matches in n nodes, without compile()."""
    return _alone("replace-pattern", lib, size)


_PATCHING = Beside("patching nn.Module", patch_alone, subtract=True)


@benchmark(at_least(3), sizes=SIZES, full=(), unit=A_CALL, beside=_PATCHING)
def networks_trace_alone(lib: Library, size: int) -> Task:
    """networks-trace, less replacing the two methods of nn.Module."""
    return BENCHMARKS["networks-trace"].make(lib, size)


@benchmark(at_least(2.2), sizes=SIZES, full=(), unit=A_CALL, beside=_PATCHING)
def networks_symbolic_trace_alone(lib: Library, size: int) -> Task:
    """networks-symbolic-trace, less that, and without compile()."""
    return _alone("networks-symbolic-trace", lib, size)


@benchmark(at_least(2), sizes=SIZES, full=(), unit=A_CALL)
def networks_graph_module_alone(lib: Library, size: int) -> Task:
    """GraphModule(network, graph) of each network, without compile()."""
    return _alone("networks-graph-module", lib, size)
