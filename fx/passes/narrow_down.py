"""Passes: the smallest part of a graph that two ways to run it differ on.

A model gives one result in eager mode, and another when a backend, a lower
precision or a pass has been at work.  Which of its thousand calls is to blame,
or which two should not have been fused?

    found = narrow_down(gm, inputs, torch.compile, rtol=1e-3)
    print(found)             which calls, and how far the results are apart
    found.write("repro")     a folder with a program that shows it

Any calls of the graph can be made a module, and run alone, with the values that
eager mode has computed for their inputs.  So the search may leave out calls
wherever it likes, and asks of what is left whether the difference is there.
"""

from __future__ import annotations

import copy
from bisect import bisect_left
from collections.abc import Callable, Sequence

import torch

from ..graph import Graph
from ..graph_module import GraphModule
from ..interpreter import Interpreter
from ..node import Node
from ..torch_private.pytree import pytree
from ..use_def.errors import refuse_torchs
from ..use_def.values import AnyValue
from .two_ways import Comparison, Found, Way, eager
from .utils.common import subgraph_of

__all__ = ["each_alone", "narrow_down"]


def narrow_down(
    gm: GraphModule,
    inputs: Sequence[AnyValue],
    other: Way,
    *,
    reference: Way = eager,
    rtol: float | None = None,
    atol: float | None = None,
) -> Found | None:
    """Find the smallest part of a graph that two ways to run it differ on.

    First the shortest beginning of the graph that differs is found by
    bisection: errors accumulate there, until the last call takes them over the
    tolerance.  Then, of what that call is computed from, the shortest end that
    still differs with the right inputs.  Last, calls are left out one by one.

    One wrong call is found exactly.  If there are several, one of them is
    found; mend it, and go on.

    Args:
        gm: the module that is searched; it is not changed.
        inputs: what it is called with.
        other: the way that is tried.  It makes something to call of a module,
            as `torch.compile` or a pass does.
        reference: the way that is right, by default eager mode.
        rtol: the relative tolerance.
        atol: the absolute tolerance; see `Comparison`.

    Returns:
        The calls, none of which can be left out; None if there is no
        difference on the whole graph.  An exception of `other` is a
        difference too, and is followed as long as it is of the same type.

    Raises:
        What the graph raises in eager mode, or in the reference.

    Cost: O(log n + m) comparisons and runs in eager mode, for n calls, m of
    which are left when nothing is left to bisect.

    torch.fx: passes/net_min_base.py, _MinimizerBase; there one inherits from
    the class to say how to run a part, and chooses among six ways to search.
    """
    search = _Search(gm, inputs, Comparison(other, reference, rtol, atol))
    calls = [node for node in gm.graph.nodes if node.op.startswith("call")]
    if calls and search.differs(calls):
        search.shrink(calls)
    return search.found


def each_alone(
    gm: GraphModule,
    inputs: Sequence[AnyValue],
    other: Way,
    *,
    reference: Way = eager,
    rtol: float | None = None,
    atol: float | None = None,
) -> list[Found]:
    """Run each call alone in two ways, and list those that differ, in order.

    Each call gets the values of eager mode.  So nothing accumulates, and a
    difference is found that later calls hide; one that needs several calls,
    such as those that a backend fuses, is not.

    Args:
        gm: the module; it is not changed.
        inputs: what it is called with.
        other: the way that is tried.
        reference: the way that is right, by default eager mode.
        rtol: the relative tolerance.
        atol: the absolute tolerance; see `Comparison`.

    Returns:
        One `Found` for each call that differs; `str` of it says how far.

    Raises:
        What the graph raises in eager mode, or in the reference.

    Cost: O(n) comparisons of one call, and a run in eager mode.
    """
    search = _Search(gm, inputs, Comparison(other, reference, rtol, atol))
    differing: list[Found] = []

    def compare(node: Node, values: dict[Node, AnyValue]) -> None:
        if node.op.startswith("call"):
            module, needed = _alone(gm, [node])
            taken = copy.deepcopy([values[value] for value in needed])
            if search.compare([node], module, taken) and search.found:
                differing.append(search.found)

    search.watch(compare)
    return differing


class _Search:
    """Compares parts of a graph, and remembers the last that differed."""

    def __init__(
        self,
        gm: GraphModule,
        inputs: Sequence[AnyValue],
        comparison: Comparison,
    ) -> None:
        refuse_torchs(gm)
        self._gm = gm
        self._copy = copy.deepcopy(gm)
        self._inputs = pytree.tree_map_only(
            torch.Tensor, torch.Tensor.detach, tuple(inputs)
        )
        self._comparison = comparison
        self._kind: str | None = None
        self._runs = 0
        self.found: Found | None = None

    def shrink(self, calls: list[Node]) -> None:
        """Drop calls that are not needed to reproduce the difference.

        Args:
            calls: in the order of the graph.
        """
        self._kind = self.found.problem.kind if self.found else None
        whole = calls
        size = self._least(len(whole), lambda size: whole[:size])
        calls = whole[:size]
        above = _computes(calls)
        if len(above) < size and self.differs(above):
            calls = above
        end = calls
        size = self._least(len(end), lambda size: end[-size:])
        calls = end[-size:]
        for node in calls if size > 1 else ():
            fewer = [call for call in calls if call is not node]
            if fewer and self.differs(fewer):
                calls = fewer

    def _least(self, size: int, part: Callable[[int], list[Node]]) -> int:
        """A size at which a part differs, and with one call less does not.

        A bisection ends at such a border also if there are several, because no
        calls at all surely make no difference.

        Args:
            size: at which it differs.
            part: the calls of a part, by their number.
        """
        smaller = range(1, size)
        index = bisect_left(
            smaller, True, key=lambda some: self.differs(part(some))
        )
        return index + 1

    def differs(self, calls: list[Node]) -> bool:
        """Whether the two ways differ on these calls alone.

        The values of eager mode may fill the memory, so they are not kept. It
        is run again for each part, and what the part takes is copied before a
        later write can change it.
        """
        module, needed = _alone(self._gm, calls)
        inside, taken = set(calls), dict[Node, AnyValue]()
        copies: dict[int, AnyValue] = {}  # so that copies share what values do

        def take(node: Node, values: dict[Node, AnyValue]) -> None:
            for value in node.all_input_nodes if node in inside else ():
                if value in values and value not in inside | taken.keys():
                    taken[value] = copy.deepcopy(values[value], copies)

        self.watch(take)
        return self.compare(calls, module, [taken[value] for value in needed])

    def watch(self, see: Callable[[Node, dict[Node, AnyValue]], None]) -> None:
        """Run the graph in eager mode, and show it to `see` at each node."""
        shared = {id(p): p for p in self._copy.parameters()}
        module, inputs = copy.deepcopy((self._copy, self._inputs), shared)
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            _Watch(module, self._gm.graph, see).run(*inputs)

    def compare(
        self, calls: list[Node], module: GraphModule, inputs: list[AnyValue]
    ) -> bool:
        """Whether the two ways differ on a part, as they did before."""
        self._runs += 1
        problem = self._comparison.problem(module, inputs)
        if problem is None or self._kind not in (None, problem.kind):
            return False
        self.found = Found(
            tuple(calls),
            module,
            tuple(inputs),
            self._comparison,
            problem,
            self._runs,
        )
        return True


class _Watch(Interpreter):
    """Shows each node, before it runs, with the values that are there."""

    def __init__(
        self,
        module: GraphModule,
        graph: Graph,
        see: Callable[[Node, dict[Node, AnyValue]], None],
    ) -> None:
        super().__init__(module, graph=graph)
        self._see = see

    def run_node(self, n: Node) -> AnyValue:
        """Show the node and run it."""
        self._see(n, self.env)
        return super().run_node(n)


def _computes(calls: list[Node]) -> list[Node]:
    """Those of the calls that the last one is computed from, and it."""
    needed = {calls[-1]}
    for node in reversed(calls):
        if node in needed:
            needed.update(node.all_input_nodes)
    return [node for node in calls if node in needed]


def _alone(
    gm: GraphModule, calls: list[Node]
) -> tuple[GraphModule, list[Node]]:
    """Some calls as a module that returns what is used outside of them.

    They keep their names, for backends that look at names.

    Args:
        gm: the module that has them.
        calls: in the order of the graph.

    Returns:
        The module, and the values that it takes, as nodes of `gm`.
    """
    inside = set(calls)
    used = [node for node in calls if not inside.issuperset(node.users)]
    graph, needed = subgraph_of(
        calls, used or calls[-1:], fetches=True, as_tuple=True
    )
    return GraphModule(gm, graph), needed
