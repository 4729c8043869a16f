"""`fx.show` in the reader's browser: shapes come from a run of the stand-in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Set
from typing import Any, Final, TypeAlias

from fx._symbolic_trace import symbolic_trace
from fx.graph import Graph
from fx.graph_module import GraphModule
from fx.interpreter import Interpreter
from fx.node import Node, map_arg
from fx.show.describe import Data, Facts, describe, rows_of
from fx.show.document import Page

AnyValue: TypeAlias = Any
"""What the reader's program computes with."""

SHOWN: Final[list[Page]] = []
"""The pages that the program has asked for."""


def show(
    module: AnyValue,
    *inputs: AnyValue,
    after: AnyValue = None,
    times: bool = False,
    title: str = "",
) -> Page:
    """Show a module's graph, or what a pass has changed; as `fx.show`.

    Args:
        module: a graph module, a module or a function.
        *inputs: inputs, with which shapes are found.
        after: what a pass made of it.
        times: of no use here, since nothing is computed.
        title: a heading; by default the name of the module's class.
    """
    gm = traced(module)
    both = [gm] if after is None else [gm, traced(after)]
    sides = [describe(one, measured(one, inputs)) for one in both]
    data: Data = {"sides": sides}
    if len(both) > 1:
        data["rows"] = rows_of(gm, both[1], *compared(gm, both[1]))
    page = Page(title or type(gm).__name__, data)
    SHOWN.append(page)
    return page


def compared(
    before: GraphModule, after: GraphModule
) -> tuple[dict[Node, Node], dict[Node, list[str]]]:
    """The nodes that belong together, and how those differ.

    `fx.diff` is not here, but a pass leaves the names of what it keeps.  As
    many nodes as stood between two of these have been replaced one by one.
    """
    graphs = before.graph, after.graph
    names, there = ({n.name: n for n in graph.nodes} for graph in graphs)
    same = {names[one]: there[one] for one in names if one in there}
    gone, made = (_runs(graph, {*names} & {*there}) for graph in graphs)
    for start in gone:
        if len(gone[start]) == len(made[start]):
            same |= zip(gone[start], made[start], strict=True)
    what = {
        new: [f"{old.format_node()}  became  {new.format_node()}"]
        for old, new in same.items()
        if _text(old, same) != _text(new, {})
    }
    return same, what


def _runs(graph: Graph, kept: Set[str]) -> dict[str, list[Node]]:
    """The nodes behind each kept one and in front of the next, by its name."""
    runs: dict[str, list[Node]] = defaultdict(list)
    start = ""
    for node in graph.nodes:
        if node.name in kept:
            start = node.name
        else:
            runs[start].append(node)
    return runs


def _text(node: Node, same: Mapping[Node, Node]) -> str:
    """What a node does, with what its inputs became."""
    given = map_arg((node.args, node.kwargs), lambda one: same.get(one, one))
    return f"{node.op} {node._pretty_print_target(node.target)} {given}"


def traced(module: AnyValue) -> GraphModule:
    """A module's graph; in a page every trace records the lines."""
    is_traced = isinstance(module, GraphModule)
    return module if is_traced else symbolic_trace(module)


def measured(gm: GraphModule, inputs: tuple[AnyValue, ...]) -> Facts:
    """What is known of the values, after a run on the inputs if any."""
    run = _Recorded(gm)
    if inputs:
        try:
            run.run(*inputs)
        except Exception as error:
            run.refused = run.refused or f"{type(error).__name__}: {error}"
    return Facts(run.values, {}, "; ".join(filter(None, run.problems())))


class _Recorded(Interpreter):
    """Notes the value of each node, and goes on past what is not known."""

    def __init__(self, gm: GraphModule) -> None:
        super().__init__(gm)
        self.values: dict[Node, AnyValue] = {}
        self.unknown: dict[Node, str] = {}
        self.refused = ""

    def run_node(self, n: Node) -> AnyValue:
        """Run a node, and note its value, or why there is none."""
        if any(node in self.unknown for node in n.all_input_nodes):
            self.unknown[n] = ""
            return None
        try:
            self.values[n] = super().run_node(n)
        except NotImplementedError as error:
            self.unknown[n] = str(error)
            return None
        except Exception as error:
            reason = str(error).partition("\n")[0]
            self.refused = f"{n.name} gives {type(error).__name__}: {reason}"
            raise
        return self.values[n]

    def problems(self) -> list[str]:
        """Why values are not known, and which parameters are not counted."""
        named = {
            type(module).__name__
            for module in self.submodules.values()
            if vars(module).get("is_unknown")
        }
        uncounted = ", ".join(f"nn.{name}" for name in sorted(named))
        return [
            self.refused,
            *dict.fromkeys(self.unknown.values()),
            uncounted and f"the parameters of {uncounted} are not counted",
        ]
