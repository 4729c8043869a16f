"""In a page: what is known of the value of each node.

It stands in for fx/show/measure.py: shapes come from a run of the small torch.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from fx.codegen.source import frames_of
from fx.graph_module import GraphModule
from fx.interpreter import Interpreter
from fx.node import Node
from fx.show.describe import Facts

AnyValue: TypeAlias = Any
"""What the reader's program computes with."""

PLACE: Final = "your program"
"""The name of the reader's file, which errors show."""


def measure(gm: GraphModule, inputs: Sequence[AnyValue], times: bool) -> Facts:
    """Find out about the values of a graph.

    Args:
        gm: the module.
        inputs: its inputs; without any, what `meta` has is taken.
        times: of no use here, since nothing is computed.
    """
    if not inputs:
        known = {node: node.meta.get("val") for node in gm.graph.nodes}
        return Facts(known, {}, "")
    run = _Recorded(gm)
    try:
        run.run(*inputs)
    except Exception as error:
        run.refused = run.refused or f"{type(error).__name__}: {error}"
    return Facts(run.values, {}, "; ".join(filter(None, run.problems())))


def _line(node: Node, error: Exception | None = None) -> str:
    """The reader's line that failed, or that made a node."""
    frames = traceback.extract_tb(error.__traceback__ if error else None)
    lines = [one.lineno for one in frames if one.filename == PLACE]
    lines = lines or [one.line for one in frames_of(node.stack_trace)]
    return f", line {lines[-1]}" if lines else ""


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
            self.unknown[n] = f"no shape from {n.name}{_line(n)}: {error}"
            return None
        except Exception as error:
            reason = str(error).partition("\n")[0]
            kind = type(error).__name__
            place = f"{n.name}{_line(n, error)}"
            self.refused = f"the run stops at {place}: {kind}: {reason}"
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
