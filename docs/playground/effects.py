"""What a page knows of effects: functions and methods by their names.

The installed fx asks the signatures that torch has, which a page's torch lacks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fx.graph import Graph
from fx.node import Node
from fx.use_def.dead_code import Rule, TorchsRule, Unknown, has_side_effect

KNOWN: Final = ("torch", "math", "builtins", "_operator")
"""Modules of which only what is registered or named so has an effect."""


class NamedRule(TorchsRule):
    """Keeps `add_` and the like, too, whether or not the write is seen."""

    def must_keep(
        self, unknown: Unknown, effects: Rule | None
    ) -> Callable[[Node], bool]:
        """The predicate by which dead code elimination keeps unused nodes."""
        torchs = super().must_keep(unknown, effects)
        if effects == "torch":
            return torchs

        def keep(node: Node) -> bool:
            called = node.op in ("call_method", "call_function")
            name = getattr(node.target, "__name__", str(node.target))
            module = getattr(node.target, "__module__", None) or "torch"
            known = module.partition(".")[0] in KNOWN
            return (
                torchs(node)
                or (called and name.endswith("_") and name[-2:] != "__")
                or (called and unknown == "keep" and not known)
            )

        return keep


has_side_effect(print)
Graph._dead_code_rule = NamedRule()  # noqa: SLF001  # as `import fx` does
