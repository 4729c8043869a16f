"""Passes: what `fx.effects` was called in fx 0.2. It ends with fx 0.4.

Programs may have imported it; they should write `fx.effects`, which stays.
"""

from __future__ import annotations

from ..extra.effects.effects import (
    RULE,
    Effect,
    by_rule,
    classify,
    has_side_effect,
    is_impure,
    must_keep,
)

__all__ = [
    "RULE",
    "Effect",
    "by_rule",
    "classify",
    "has_side_effect",
    "is_impure",
    "must_keep",
]
