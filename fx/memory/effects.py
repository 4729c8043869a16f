"""Passes: the name that `fx.effects` had in fx 0.2; 0.4 will not have it."""

from __future__ import annotations

from ..extra.effects.effects import (
    Effect,
    MemoryRule,
    by_rule,
    classify,
    must_keep,
    register_tables,
)

__all__ = [
    "Effect",
    "MemoryRule",
    "by_rule",
    "classify",
    "must_keep",
    "register_tables",
]
