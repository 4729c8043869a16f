"""Three things to bring about in each of stages 01 to 03, checked in a page."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import torch
from torch.nn import functional as F

from fx.use_def.lint import problems

AnyValue: TypeAlias = Any
"""What the reader's program has made."""


@dataclass(frozen=True)
class Task:
    """Something that a program should bring about.

    Attributes:
        asked: what, as a sentence.
        start: the program to begin with, which does not do it yet.
        check: what a right program's `graph` still lacks, "" if nothing.
    """

    asked: str
    start: str
    check: Callable[[AnyValue], str]

    def problem(self, names: Mapping[str, AnyValue]) -> str:
        """What is still wrong with what a program has made; "" if nothing."""
        if "graph" not in names:
            return "the program has no `graph` any more: keep that name"
        return self.check(names["graph"])


def _checked(check: Callable[[AnyValue], str]) -> Callable[[AnyValue], str]:
    """Checks the invariants of a graph first."""

    def both(graph: AnyValue) -> str:
        for problem in problems(graph):
            return f"lint finds: {problem.message}"
        return check(graph)

    return both


def _calls(graph: AnyValue) -> list[AnyValue]:
    """The targets of what a graph calls."""
    return [
        node.target
        for node in graph.nodes
        if node.op not in ("placeholder", "output")
    ]


def _gelu(graph: AnyValue) -> str:
    if torch.relu in _calls(graph):
        return "relu is still there: redirect its users, then erase it"
    if _calls(graph)[-1] not in (F.gelu,):
        return "the last call is not gelu"
    return ""


def _scaled(graph: AnyValue) -> str:
    linear = next(node for node in graph.nodes if node.name == "linear")
    [scale, *more] = [*linear.users] or [None]
    if more or scale is None or scale.target is not operator.mul:
        return f"linear should have one user, a mul, and has {[*linear.users]}"
    if [user.name for user in scale.users] != ["add"]:
        return f"mul should be used by add, and is by {[*scale.users]}"
    return ""


def _without_add(graph: AnyValue) -> str:
    if operator.add in _calls(graph):
        return "add is still there: let relu take linear, then erase dead code"
    relu = next((n for n in graph.nodes if n.target is torch.relu), None)
    if relu is None or [n.name for n in relu.all_input_nodes] != ["linear"]:
        return "relu should take linear"
    return ""


def _one_minus(graph: AnyValue) -> str:
    for node in graph.nodes:
        if node.target is operator.sub and node.args[0] == 1:
            return ""
    return f"no sub(1, …) was recorded: the calls are {_named(graph)}"


def _shape_and_view(graph: AnyValue) -> str:
    ops = [(node.op, node.target) for node in graph.nodes]
    if ("call_function", getattr) not in ops:
        return "no attribute is fetched: an unused `x.shape` records nothing"
    if ("call_method", "view") not in ops:
        return "no call of the method view was recorded"
    return ""


def _unpacked(graph: AnyValue) -> str:
    found = _calls(graph).count(operator.getitem)
    if found == 2:
        return ""
    return f"two getitem are wanted, and there are {found}: {_named(graph)}"


def _named(graph: AnyValue) -> str:
    """The calls of a graph, in words."""
    return ", ".join(getattr(t, "__name__", str(t)) for t in _calls(graph))


_RESIDUAL: Final = """\
import operator
import torch
from fx import Graph

graph = Graph()
x = graph.placeholder("x")
linear = graph.call_function(torch.tanh, (x,), name="linear")
add = graph.call_function(operator.add, (linear, x))
relu = graph.call_function(torch.relu, (add,))
graph.output(relu)

# Your lines:
"""
_PROXY: Final = """\
from fx import Graph, Proxy

def forward(x):
    return {}

graph = Graph()
result = forward(Proxy(graph.placeholder("x")))
graph.output(result.node)
"""
TASKS: Final = {
    "02-replace": Task(
        "Replace `relu` by `torch.nn.functional.gelu`, and erase it.",
        _RESIDUAL,
        _checked(_gelu),
    ),
    "02-behind": Task(
        "Multiply the result of `linear` by 2, for each of its users.",
        _RESIDUAL,
        _checked(_scaled),
    ),
    "02-dead": Task(
        "Let `relu` take `linear` instead of `add`, and erase what is dead.",
        _RESIDUAL,
        _checked(_without_add),
    ),
    "03-reflected": Task(
        "Make `forward` record `operator.sub` with the number 1 in front.",
        _PROXY.format("x - 1"),
        _checked(_one_minus),
    ),
    "03-attribute": Task(
        "Make `forward` record the attribute `shape` and the method `view`.",
        _PROXY.format("x * 2"),
        _checked(_shape_and_view),
    ),
    "03-unpack": Task(
        "Cut `x` into two halves with `chunk`, and add them up.",
        _PROXY.format("x + x"),
        _checked(_unpacked),
    ),
}
"""The tasks, by name: the stage, and what it is about."""


class Listed:
    """What the site shows of all tasks."""

    def json(self) -> str:
        """Name -> what is asked, and the program to begin with."""
        return json.dumps({n: [t.asked, t.start] for n, t in TASKS.items()})
