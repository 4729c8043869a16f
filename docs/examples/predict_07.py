"""Questions of stage 07: what does this print?"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch

from fx._symbolic_trace import symbolic_trace
from fx.node import Node
from fx.passes.utils.matcher_utils import SubgraphMatcher
from fx.rewriting.node_rules import Rewriter, rewrite
from fx.rewriting.rules import Rule, rewrite_until_stable
from fx.subgraph_rewriter import replace_pattern

Function: TypeAlias = Callable[..., object]


def matches(program: Function, pattern: Function) -> int:
    """How often a pattern is found in a program."""
    matcher = SubgraphMatcher(symbolic_trace(pattern).graph)
    return len(matcher.match(symbolic_trace(program).graph))


def what_an_input_takes() -> None:
    def pattern(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a + b

    print(
        matches(lambda x, y: y + x, pattern),
        matches(lambda x: x + 2, pattern),
        matches(lambda x: 2 + x, pattern),
        matches(lambda x: x + x, pattern),
    )


def which_constants_fit() -> None:
    print(
        matches(lambda x: x + 1, lambda a: a + 1),
        matches(lambda x: x + 2, lambda a: a + 1),
        matches(lambda x: x + 1.0, lambda a: a + 1),
    )


def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    total = x + y
    return torch.relu(total) * total


def who_else_reads() -> None:
    def both(a: torch.Tensor, b: torch.Tensor) -> list[torch.Tensor]:
        total = a + b
        return [total, torch.relu(total)]

    print(
        matches(program, lambda a: torch.relu(a)),
        matches(program, lambda a, b: torch.relu(a + b)),
        matches(program, both),
    )


def relu_relu(a: torch.Tensor) -> torch.Tensor:
    return torch.relu(torch.relu(a))


def relu(a: torch.Tensor) -> torch.Tensor:
    return torch.relu(a)


def four_in_a_row(x: torch.Tensor) -> torch.Tensor:
    return relu_relu(relu_relu(x))


def what_is_left() -> None:
    gm = symbolic_trace(four_in_a_row)
    found = replace_pattern(gm, relu_relu, relu)
    print(len(found), [node.name for node in gm.graph.nodes])

    gm = symbolic_trace(four_in_a_row)
    count = rewrite_until_stable(gm, [Rule(relu_relu, relu)])
    print(count, [node.name for node in gm.graph.nodes])


def two_rules() -> None:
    by_pattern = Rule(lambda a: torch.neg(torch.neg(a)), lambda a: a)

    @rewrite("call_function", torch.neg)
    def by_function(node: Node, rewriter: Rewriter) -> None:
        (inner,) = node.all_input_nodes
        if inner.target is torch.neg:
            rewriter.replace(node, inner.args[0], inputs=True)

    def program(x: torch.Tensor) -> torch.Tensor:
        inner = torch.neg(x)
        return torch.neg(inner) + inner

    for rule in by_pattern, by_function:
        print(rewrite_until_stable(symbolic_trace(program), [rule]), end=" ")


def where_it_goes() -> None:
    def before(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        kept = torch.relu(x + y)
        return torch.neg(y) * kept

    gm = symbolic_trace(before)
    replace_pattern(
        gm,
        lambda a, b: torch.relu(a + b),
        lambda a, b: torch.clamp(a + b, min=0.0),
    )
    print([node.name for node in gm.graph.nodes])
