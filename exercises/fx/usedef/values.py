"""Stage 02, use-def: the names for values that fx passes on.

This file imports nothing of fx, so that every other file can use the names.
"""

from __future__ import annotations

from typing import Any, TypeAlias

__all__ = ["Argument", "Value"]

Value: TypeAlias = Any
"""A value of the user's program, which fx passes on and knows nothing of."""

Argument: TypeAlias = object
"""What args and kwargs are made of: a Node, a constant, or a tuple, list,
dict with string keys, slice or dataclass of Arguments.  Any object can be a
constant, so the alias promises nothing: narrow with `isinstance` or `match`,
or ask `node.input_at(0)` for a Node."""
