"""How many functions Python calls for each node: torch.fx's work, and ours."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable
from types import ModuleType

import torch
import torch.fx

import fx

STEPS = 200


class Functions(torch.nn.Module):
    """Functions of torch."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(STEPS):
            y = torch.relu(x)
            z = torch.tanh(y)
            y = torch.add(y, z)
            x = torch.mul(y, 0.5)
        return x


class Operators(torch.nn.Module):
    """Operators of Python."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(STEPS):
            y = x + 1.0
            z = -y
            y = z * x
            x = 0.5 - y
        return x


Counted = Callable[[ModuleType], Callable[[], object]]
"""Given a library, what to count the calls in."""


def tracing(root: torch.nn.Module) -> Counted:
    """Trace a module."""
    return lambda lib: lambda: lib.Tracer().trace(root)


def copying(lib: ModuleType) -> Callable[[], object]:
    """Copy a graph into an empty one."""
    graph = lib.Tracer().trace(Functions())
    return lambda: lib.Graph().graph_copy(graph, {})


def writing(lib: ModuleType) -> Callable[[], object]:
    """Write a graph as Python."""
    graph = lib.Tracer().trace(Functions())
    return lambda: graph.python_code("self")


def interpreting(lib: ModuleType) -> Callable[[], object]:
    """Run a graph node by node, on a number."""
    interpreter = lib.Interpreter(lib.symbolic_trace(Operators()))
    return lambda: interpreter.run(0.25)


COUNTED: dict[str, Counted] = {
    "trace functions of torch": tracing(Functions()),
    "trace operators of Python": tracing(Operators()),
    "Graph.graph_copy": copying,
    "Graph.python_code": writing,
    "Interpreter.run": interpreting,
}


def calls(run: Callable[[], object]) -> int:
    """How many calls it takes, when all is warm."""
    run()
    profile = cProfile.Profile()
    profile.runcall(run)
    stats: dict[object, tuple[int, ...]] = vars(pstats.Stats(profile))["stats"]
    return sum(numbers[1] for numbers in stats.values())


def main() -> None:
    """Count them, for programs of 800 nodes."""
    print(f"{'function calls a node':<26}torch.fx    fx")
    for what, counted in COUNTED.items():
        theirs, ours = (
            calls(counted(lib)) / (4 * STEPS) for lib in (torch.fx, fx)
        )
        print(f"{what:<26}{theirs:>8.0f}{ours:>6.0f}")


if __name__ == "__main__":
    main()
