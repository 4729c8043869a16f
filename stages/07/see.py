"""What one can see once an exercise of stage 07 is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch

from fx._symbolic_trace import symbolic_trace
from fx.passes.utils.matcher_utils import is_convex
from fx.rewriting.rules import Rule, rewrite_until_stable
from fx.subgraph_rewriter import replace_pattern
from stages.residual import Residual


def relu_of_sum(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """What to look for."""
    return torch.relu(a + b)


def clamp_of_sum(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """What to put there."""
    return torch.clamp(torch.add(a, b), min=0.0)


def matched() -> str:
    """Which node of a pattern is which of the graph."""
    gm = symbolic_trace(Residual())
    (match,) = replace_pattern(gm, relu_of_sum, clamp_of_sum)
    return ", ".join(f"{one} is {two}" for one, two in match.nodes_map.items())


def there_and_back() -> str:
    """Sets of nodes with and without a way that comes back."""
    graph = symbolic_trace(lambda x: torch.neg(torch.relu(x) * 2)).graph
    _, relu, mul, neg, _ = graph.nodes
    sets = [relu, mul], [relu, neg]
    return ", ".join(f"{one}: {is_convex({*one})}" for one in sets)


def replaced() -> str:
    """The code after a replacement."""
    gm = symbolic_trace(Residual())
    replace_pattern(gm, relu_of_sum, clamp_of_sum)
    return gm.code.strip()


def stable() -> str:
    """One rule is used until nothing matches."""
    gm = symbolic_trace(lambda x: torch.abs(torch.abs(torch.abs(x))))
    rule = Rule(lambda a: torch.abs(torch.abs(a)), lambda a: torch.abs(a))
    count = rewrite_until_stable(gm, [rule])
    return f"abs(abs(abs(x))), after {count} rewrites: {gm.code.split()[-1]}"


SEE: Final[dict[str, Callable[[], str]]] = {
    "matching": matched,
    "is_convex": there_and_back,
    "Edit.insert": replaced,
    "Worklist.look_again": stable,
}
"""An exercise -> what it can do now."""
