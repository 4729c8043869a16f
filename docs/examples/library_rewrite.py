"""Using fx: replace one piece of program by another."""

from __future__ import annotations

import torch

import fx
from fx.extra.matching.explain import explain
from fx.rewriting.rules import Rule, rewrite_until_stable


def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Adds in two ways, and negates twice."""
    first = torch.relu(x + y)
    second = torch.relu(y.add(first))
    return torch.neg(torch.neg(second))


def pattern(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.relu(a + b)


def replacement(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.clamp(torch.add(a, b), min=0)


def main() -> None:
    """Find equal calls, ask about the rest, and normalize."""
    gm = fx.symbolic_trace(program)
    print("found:", len(fx.replace_pattern(gm, pattern, replacement)))
    explain(gm, pattern)
    found = fx.replace_pattern(gm, pattern, replacement, normalize=True)
    print("\nfound with normalize=True:", len(found))

    twice = Rule(lambda a: torch.neg(torch.neg(a)), lambda a: a)
    print("rewrites:", rewrite_until_stable(gm, [twice]))
    print(gm.code.strip())
