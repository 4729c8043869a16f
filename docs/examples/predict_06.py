"""Questions of stage 06: what does this print?"""

from __future__ import annotations

from typing import Any, TypeAlias

import torch

from fx._symbolic_trace import symbolic_trace
from fx.interpreter import Interpreter, Transformer
from fx.node import Node, Target
from fx.use_def.values import Argument
from stages.residual import Residual

AnyValue: TypeAlias = Any
"""What a node computes: anything."""


class Neg(Interpreter):
    """Runs neg where a function relu is called."""

    def call_function(
        self, target: Target, args: tuple[Argument, ...], kwargs: AnyValue
    ) -> AnyValue:
        if target is torch.relu:
            target = torch.neg
        return super().call_function(target, args, kwargs)


def which_relu() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) + x.relu()

    gm = symbolic_trace(program)
    print(Neg(gm).run(torch.tensor([-3.0])).tolist())


class Watch(Interpreter):
    """Prints the name of each node that is run."""

    def run_node(self, n: Node) -> AnyValue:
        print(n.name, end=" ")
        return super().run_node(n)


def given_beforehand() -> None:
    gm = symbolic_trace(Residual())
    (linear,) = gm.graph.find_nodes(op="call_module")
    Watch(gm).run(torch.ones(4), initial_env={linear: torch.ones(4)})
    print()


def what_is_left() -> None:
    gm = symbolic_trace(Residual())
    for collect in (True, False):
        watched = Interpreter(gm, garbage_collect_values=collect)
        watched.run(torch.ones(4))
        print([node.name for node in watched.env])


class Drop(Transformer):
    """Leaves relu out, and says what it is given."""

    def call_function(
        self, target: Target, args: tuple[Argument, ...], kwargs: AnyValue
    ) -> AnyValue:
        print(type(args[0]).__name__)
        if target is torch.relu:
            return args[0]
        return super().call_function(target, args, kwargs)


def left_out() -> None:
    gm = symbolic_trace(Residual())
    new = Drop(gm).transform()
    print(*new.graph.nodes)
    print(*gm.graph.nodes)
