"""Stage 02, use-def: which nodes without users must stay.

A node whose value no other node uses can go, unless the program loses
something else with it: a parameter, a result, a write, a message on the screen.
The rule here is torch.fx's.  It knows what was registered as having an effect,
operators whose schema says that they write, functions that draw random numbers,
and modules that say so of themselves; of methods and of other functions in
Python it knows nothing, and they go.

It is a plain default.  `import fx` puts a rule in its place that reads the
signatures of torch's functions and follows memory: see `fx.effects`.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from contextvars import ContextVar
from typing import Final, Literal, ParamSpec, TypeAlias, TypeVar

import torch

from ..node import Node
from ..torch_private.overloads import (
    called_for_effect,
    draws_numbers,
    schema_writes,
)
from .dotted_path import find
from .values import AnyValue

P = ParamSpec("P")
R = TypeVar("R")

Unknown: TypeAlias = Literal["drop", "keep"]
"""What becomes of calls of which nothing is known."""

Rule: TypeAlias = Literal["sound", "torch"]
"""Which effects keep a node: those that somebody may see, or those that
torch.fx knows."""

RULE: Final[ContextVar[Rule]] = ContextVar("RULE", default="sound")
"""The rule of dead code elimination where none is given; see
`effects.by_rule`."""

side_effect_registry: Final[set[Callable[..., AnyValue]]] = set()
"""Functions that are called for their effect; see `has_side_effect`."""


def has_side_effect(fn: Callable[P, R]) -> Callable[P, R]:
    """Register a function as impure, so that no call of it is removed.

    Args:
        fn: hashable.  Comes back unchanged, so this can be a decorator.

    torch.fx: node.py, has_side_effect
    """
    side_effect_registry.add(fn)
    return fn


def is_in(registry: Set[Callable[..., AnyValue]], target: object) -> bool:
    """Whether a function is in a registry."""
    try:
        return target in registry
    except TypeError:  # it is not hashable, so it cannot be
        return False


def is_registered(target: object) -> bool:
    """Whether a function is registered as having an effect, here or there."""
    registries = side_effect_registry, called_for_effect
    return any(is_in(registry, target) for registry in registries)


_DRAWING: Final = frozenset(
    getattr(torch, name)
    for name in "bernoulli multinomial normal poisson rand rand_like randint "
    "randint_like randn randn_like randperm".split()
)
"""Functions without tags that draw random numbers."""


class TorchsRule:
    """The rule of torch.fx, but for effects that libraries declare.

    It is what the graph asks when it looks for dead code; another rule is a
    subclass.
    """

    def is_impure(self, node: Node, impure_random: bool) -> bool:
        """Whether torch.fx keeps a node without users.

        Raises:
            PathError: the graph has no module at the target of a call_module
                node.
        """
        op, target = node.op, node.target
        if op == "call_module":
            module = find(node.graph.owning_module, str(target))
            return bool(getattr(module, "_is_impure", False))
        if op != "call_function":
            return op in ("placeholder", "output")
        if is_in(_DRAWING, target) or is_registered(target):
            return True
        called = getattr(target, "default", target)  # of a packet, as torch.fx
        draws = impure_random and draws_numbers(called)
        return draws or schema_writes(called) or is_registered(called)

    def must_keep(
        self, unknown: Unknown, effects: Rule | None
    ) -> Callable[[Node], bool]:
        """The predicate that says which unused nodes stay in a graph.

        It is asked from the last node of the graph to the first.  This one
        keeps what is impure, whatever is asked for.
        """
        return lambda node: self.is_impure(node, impure_random=True)
